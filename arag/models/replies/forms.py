"""Tables of forms in which models write calls, thinking and the ends of replies. A new form is a line here.

All names are patterns of regular expressions that ignore case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

End: TypeAlias = Literal["cut_off", "refused"]

ENDS: dict[str, End] = {
    "length": "cut_off",
    "max_tokens": "cut_off",
    "max_output_tokens": "cut_off",
    "model_length": "cut_off",
    "model_context_window_exceeded": "cut_off",
    "incomplete": "cut_off",
    "content_filter": "cut_off",
    "content_filtered": "cut_off",
    "error": "cut_off",
    "failed": "cut_off",
    "cancelled": "cut_off",
    "abort": "cut_off",
    "network_error": "cut_off",
    "insufficient_system_resource": "cut_off",
    "recitation": "cut_off",
    "malformed_function_call": "cut_off",
    "refusal": "refused",
    "guardrail_intervened": "refused",
    "sensitive": "refused",
    "safety": "refused",
    "blocklist": "refused",
    "prohibited_content": "refused",
    "spii": "refused",
}
"""Why a reply ended, by the providers' words for it. Other words mean that it is complete."""

END_KEYS = ("finish_reason", "stop_reason", "done_reason", "status")
"""The providers' names for why a reply ended, in a reply's metadata."""


@dataclass(frozen=True)
class Thinking:
    """How thinking begins and ends."""

    opening: str
    closing: str
    is_distinct: bool = True
    """Whether the closing means thinking where nothing was opened, as some chat templates open it in the prompt."""


_THOUGHT = (
    r"(?:\w+[:_-])?(?:ant)?(?:think\w*|thoughts?(?:_process)?|reason\w*|reflection|scratch_?pad|\w*monologue|analysis)"
)
THINKING = (
    Thinking(rf"<{_THOUGHT}(?:\s[^<>]*)?>", rf"</{_THOUGHT}\s*>"),
    Thinking(r"\[(?:THINK(?:ING)?|THOUGHTS?|REASON(?:ING)?)\]", r"\[/(?:THINK(?:ING)?|THOUGHTS?|REASON(?:ING)?)\]"),
    Thinking(r"[◁«⟨]think(?:ing)?[▷»⟩]", r"[◁«⟨]/think(?:ing)?[▷»⟩]"),
    Thinking(
        r"<\|(?:begin_of_|start_(?:of_)?)?(?:think\w*|thoughts?|reasoning)\|>",
        r"<\|(?:end_of_|end_|/)(?:think\w*|thoughts?|reasoning)\|>",
    ),
    Thinking(
        r"(?:<\|start\|>assistant)?<\|channel\|>\s*(?:analysis|thought|thinking)\b[^<]*<\|message\|>",
        r"<\|end\|>|<\|return\|>|(?=<\|start\|>|<\|channel\|>)",
        is_distinct=False,
    ),
    Thinking(r"<\|channel>\s*(?:analysis|thought|thinking)\b", r"<channel\|>", is_distinct=False),
    Thinking(r"\Aanalysis(?=[A-Z])", r"assistant\s?final(?=\W|[A-Z])", is_distinct=False),
    Thinking(r"\A\W*here is my thought process:", r"here is my response:", is_distinct=False),
    Thinking(r"<details[^<>]*reasoning[^<>]*>", r"</details>", is_distinct=False),
)

ANSWER_OPENINGS = (
    r"<(?:final_)?(?:answer|response|output)>",
    r"(?:<\|start\|>assistant)?<\|channel\|>\s*final\b[^<]*<\|message\|>",
    r"<\|(?:begin_of_solution|start_response|start_text)\|>",
    r"\[(?:ANSWER|RESPONSE)\]",
    r"thought:[^\n]*\n+final answer:",
)
"""Marks before an answer: they and what precedes them on their line are dropped."""

ANSWER_CLOSINGS = (
    r"</(?:final_)?(?:answer|response|output)>",
    r"<\|(?:end_of_solution|end_response|end_text)\|>",
    r"\[/(?:ANSWER|RESPONSE)\]",
    r"<\|(?:end|return|im_end|eot_id|eom_id|endoftext|end_of_text|end_of_turn|eos)\|>",
    r"<｜end▁of▁sentence｜>",
    r"<end_of_turn>",
    r"</s>",
)

CALL_MARKS = (
    r"</?(?:\w+:)?(?:tools?|functions?|invoke|use_mcp_tool|action)(?:[_-]?(?:calls?|use|name|code|request|input))?(?:[=\s][^<>\n]*)?/?>",
    r"<(?:start|end)_(?:function|tool)_call>",
    r"<<\w*(?:tool|function)\w*>>?",
    r"<\|?/?[\w▁/]*(?:tool|function|python|plugin|action|call)[\w▁:]*\|?>",
    r"<[｜|][^｜|<>\n]*(?:tool|function|DSML|invoke)[^｜|<>\n]*[｜|]?[^<>\n]*>",
    r"\[/?(?:TOOL|FUNCTION|END_TOOL)_?(?:CALLS?|REQUEST|USE)?(?:_(?:BEGIN|END|START))?\]|\[ARGS\]|\[CALL_ID\]",
    r"<?(?:\|start\|>assistant)?(?:<\|channel\|>\w+)?\s*to=(?:functions?|tools?)?\b\.?",
    r"<\|channel\|>\s*commentary\b",
    r"```(?:tool|function)s?_?(?:code|calls?|use)?[ \t]*\n",
    r"^[ \t>*_#-]*(?:Action|Tool|Function|Tool[ _]call)[*_]*[ \t]*:[*_ \t]*(?=[`\w{\[])",
    r"^>>>\s*(?=\w)",
)
"""What stands only before or behind a call, when it is not quoted."""

QUOTES = (r"<escape>", r"<\|\"\|>")
"""Tokens that some models write for the quotes around a string."""

BETWEEN = (
    r"\s",
    r"</?[^<>\n]{0,80}>",
    r"[<|｜▁]+[\w▁｜|:/]*[|｜>]+",
    r"\[CALL_ID\]\s*\w+",
    r"\[/?[A-Z_]+\]",
    r"```\w*",
    r":\d+",
    r"[:=,*_`\"'>|-]",
    r"action[ _]input|arguments?|args|inputs?|parameters|params|json|commentary|code|call_id\w*|with|the",
)
"""What may stand between a tool's name and its arguments: tags, tokens, words for arguments."""

INVENTED_RESULTS = (
    r"^[ \t*_]*Observation[*_]*:",
    r"</?(?:\w+:)?(?:tool|function)_?(?:response|results?|output)s?\b[^<>]*>",
    r"\[TOOL_RESULTS?\]",
    r"```(?:tool_output|output)\b",
    r"<\|(?:start_header_id\|>(?:ipython|tool)|im_start\|>(?:tool|user)|tool_results?|observation)\b",
)
"""Where some models go on with a result of their own: the rest of the reply is left out."""

NAME_KEYS = ("name", "tool", "tool_name", "toolName", "function", "function_name", "action", "recipient_name", "api")
ARGUMENT_KEYS = (
    "arguments",
    "parameters",
    "args",
    "input",
    "action_input",
    "actionInput",
    "tool_input",
    "tool_args",
    "tool_arguments",
    "tool_parameters",
    "params",
    "kwargs",
    "properties",
)
CALL_KEYS = ("tool_calls", "tool_call", "function_call", "function", "calls", "call", "action", "tool", "tool_uses")
"""Keys of a JSON object that holds a call, or several."""

PARAMETERS = (
    r"<(?:\w+:)?(?:parameter|param|arg|argument)=\"?(?P<key>[\w-]+)\"?\s*>(?P<value>.*?)(?:</(?:\w+:)?(?:parameter|param|arg|argument)>|(?=<(?:parameter|param|arg)=|</(?:function|tool))|\Z)",
    r"<[｜|\w:]*(?:parameter|param|arg|argument)\s+name=[\"'](?P<key>[\w-]+)[\"'][^<>]*>(?P<value>.*?)(?:</[｜|\w:]*(?:parameter|param|arg|argument)>|(?=<[｜|\w:]*parameter\s)|\Z)",
    r"<arg_key>\s*(?P<key>[\w-]+)\s*</arg_key>\s*<arg_value>(?P<value>.*?)(?:</arg_value>|(?=<arg_key>)|\Z)",
    r"<(?P<key>{names})>(?P<value>.*?)</(?P=key)>",
    r"(?P<key>{names})=(?P<quote>[\"'])(?P<value>.*?)(?P=quote)(?=\s|/?>)",
)
"""Arguments as tags; `{names}` stands for the names of the tool's parameters."""

_SEARCHING = r"(?:rg|grep|meaning|sql|ls|cat|head|tail|sed|awk|find|wc)\b"
COMMANDS = (
    rf"^[ \t]*```(?:(?:ba|z)?sh|shell)[ \t]*\n\s*(?P<command>{_SEARCHING}.*?)(?:^[ \t]*```|\Z)",
    r"<(?:bash|shell)>(?P<command>.*?)(?:</(?:bash|shell)>|\Z)",
)
"""Commands for a tool whose only parameter is `command`. In a fence, others than searches may be part of an answer."""

_SHALL = (
    r"(?:I(?:['’]ll| will| shall| need to| should| must| am going to|['’]m going to)|let me|let['’]s|allow me to"
    r"|next,? I|we need to|we should)"
)
_SEARCH = (
    r"(?:search|look(?!\s+forward)|find|check|use|call|query|read|retrieve|fetch|consult|examine|gather|investigate"
    r"|explore|scan|start by|begin by|proceed)"
)
ANNOUNCEMENTS = (
    rf"\b{_SHALL}\b[^.!?\n]{{0,40}}?\b{_SEARCH}",
    r"\b(?:searching|looking up|querying|calling|fetching|retrieving)\b[^.!?\n]{0,60}(?:\.\.\.|…|\bnow\b|\bplease\b)",
    r"\b(?:wait(?=\s*[.!…]|\s*\Z|\s+(?:a|for) )|one moment|just a moment|hold on|stand by)\b",
    r"\b(?:ich werde|ich muss|lass(?:en Sie)? mich|zuerst werde ich)\b[^.!?\n]{0,60}\b(?:\w*such|lesen|prüf|abfrag)",
    r"\b(?:je vais|laissez[- ]moi|permettez[- ]moi de)\b[^.!?\n]{0,40}\b(?:cherch|recherch|consult|vérifi|lire)",
    r"\b(?:voy a|déjame|permítame|vamos a)\b[^.!?\n]{0,40}\b(?:busc|consult|revis|leer|verific)",
    r"\b(?:vou|deixe-me|vamos)\b[^.!?\n]{0,40}\b(?:busc|procur|pesquis|consult|verific|ler)",
    r"\b(?:vado a|lasciami|cercherò|sto per)\b[^.!?\n]{0,40}\b(?:cerc|consult|verific|legg)",
    r"(?:我(?:将|会|来|先|需要|要)|让我|请稍等|接下来)[^。！？\n]{0,12}(?:搜索|查找|检索|查询|查一下|看看|稍等)?",
    r"(?:検索します|検索してみ|調べます|調べてみ|お待ちください|確認します)",
    r"(?:я (?:поищу|найду|проверю|посмотрю)|сейчас (?:поищу|найду|проверю)|давайте (?:поищ|найд|посмотр)\w*|подождите)",
)
"""Sentences that only announce a search."""
