"""Judges how a use of a model ended: with the right bytes, or with an error that names the file."""

import models
from probe import use


def judge(outcome, names, right=None, *others):
    """What is not as promised, or nothing.

    An error must hold one of `names`; where there are none, it is wrong. What was read must be what
    is right, or one of others that are right too; None is anything.
    """
    if outcome.kind not in ("ok", "error"):
        return f"{outcome.kind}, {outcome.text}"
    if outcome.left:
        return f"left {outcome.left}"
    if outcome.kind == "error":
        named = any(name in outcome.text for name in names)
        return None if named else f"the error names none of {sorted(names)}: {outcome.text}"
    if right is None or outcome.digests in (right, *others):
        return None
    wrong = [name for name, digest in right.items() if outcome.digests.get(name) != digest]
    return f"neither the right bytes nor an error: {sorted(wrong)[:5]}"


def judge_save(outcome, to, old, new, cleans=True):
    """What is not as promised of a folder in which a model was to be saved, or nothing.

    `old` is what was there, None if nothing was; `cleans` says whether the save could take away what
    it made.
    """
    found = models.read_model(to)
    if outcome.kind == "ok" and found != new:
        return "saved, and the target is another model"
    hidden = hidden_in(to)
    if hidden and cleans and (outcome.kind == "ok" or outcome.kind == "error" and found == old):
        return f"left {hidden} in the target"
    return judge_target(to, old, new)


def judge_target(to, old, new):
    """Of a folder in which a save was broken off: it opens as the old model, as the new, or not."""
    opened = use("load", to)
    if opened.kind == "error" or opened.kind == "ok" and opened.digests in (old, new):
        return None
    return f"the target is neither old nor new: {opened.kind}, {sorted(opened.digests)[:5]}"


def hidden_in(folder):
    """What a save has left in a folder under names that nobody looks for."""
    return [entry.name for entry in folder.iterdir() if entry.name.startswith(".")]
