"""A shell over an index: its own commands are answered by the index, in a shell's language that models know."""
