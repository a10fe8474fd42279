"use strict";
// The steps of a run as they happen; when it ends, the page with the answer.
const steps = document.querySelector("[data-events]");
if (steps) {
  const said = document.getElementById("said");
  const events = new EventSource(steps.dataset.events);
  events.addEventListener("step", (event) => {
    const step = document.createElement("li");
    step.textContent = JSON.parse(event.data);
    steps.append(step);
    said.textContent = "";
  });
  events.addEventListener("text", (event) => said.append(JSON.parse(event.data)));
  events.addEventListener("end", () => {
    events.close();
    location.reload();
  });
}
