"""Say in plain English what Triton's compiler says about a kernel; words that are not known stay as they are."""

import re

_REPR = re.compile(r"\w*(?:Error|Exception)\((['\"])(.*)\1\)", re.DOTALL)  # how it wraps other exceptions
_BLOCK = re.compile(r"<\[(.*?)\], (.+)>")
_KNOWN = (
    (
        r"unsupported AST node type: (Break|Continue)",
        "a loop of a kernel has neither `break` nor `continue`. Let the range end the loop, write `while` with a "
        "condition, or use a mask.",
    ),
    (
        r"^(\w+) is not defined$",
        "`{0}` may have no value here: a name that only one branch of an `if` or only a loop sets does not exist after "
        "it, or in another branch. Set it before.",
    ),
    (
        r"Loop-carried variable (\w+) has initial type (.+?) but is re-assigned to (.+?) in loop!.*",
        "`{0}` is {1} before the loop and becomes {2} in it; a variable keeps its type. Start with the second type: "
        "0.0 for a float, tl.zeros or tl.full for a block.",
    ),
    (
        r"Mismatched type for (\w+) between then block \((.+?)\) and else block \((.+?)\)",
        "`{0}` is {1} in one branch of the `if` and {2} in the other. Give it one type in both.",
    ),
    (
        r"initial value for `(\w+)` is of type (.+?), but the \w+ block redefines it as (.+)",
        "`{0}` is {1} before the `if` and {2} in a branch; a variable keeps its type.",
    ),
    (
        r"Ternary expression with dynamic condition has inconsistent types (.+?) and (.+)",
        "the two values of `... if ... else ...` have two types, {0} and {1}. Convert one of them.",
    ),
    (
        r"Boolean value of Tensor with more than one value is ambiguous",
        "a block of several elements has no truth value: use & and | in masks, and tl.where instead of `if`.",
    ),
    (
        r"Cannot have `return` statements inside `while` or `for` statements in triton\.?",
        "a kernel has no `return` in a loop. Let the range end the loop.",
    ),
)


def plain(words: str) -> str:
    """Return the words of the compiler as a sentence for the author of a kernel.

    >>> plain("unsupported AST node type: Break")[:52]
    'a loop of a kernel has neither `break` nor `continue'
    >>> plain("AssertionError('int32 has no ceil')")
    'int32 has no ceil'
    """
    wrapped = _REPR.fullmatch(words.strip())
    said = wrapped[2] if wrapped else words.strip()
    for pattern, sentence in _KNOWN:
        if found := re.search(pattern, said, re.DOTALL):
            return sentence.format(*map(_type, found.groups()))
    return said


def _type(text: str) -> str:
    """Return a type of the compiler in words; other texts as they are."""
    block = _BLOCK.fullmatch(text)
    if not block:
        return text
    return f"a block of {block[1].replace(chr(39), '').replace(', ', ' × ')} {block[2]}"
