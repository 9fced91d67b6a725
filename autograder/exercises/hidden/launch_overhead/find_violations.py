"""Hidden checks and controls of exercise 15.3."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.launch_overhead.find_violations import finds
from autograder.exercises.programs.recorded_calls import (
    cached,
    created,
    fed_back,
    host_read,
    own_generator,
    rebound,
    second_shapes,
    shapes,
    stale,
    stale_in_a_loop,
    swapped,
    swapped_in_a_loop,
    traded,
    written_in_place,
)
from autograder.host.exercise import Check, Control, HiddenPart

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("numbers in loops", "between two calls", 1.5, finds((stale_in_a_loop,), (stale_in_a_loop, traded))),
        Check(
            "buffers swapped, written and fed back",
            "memory",
            1.5,
            finds((swapped,), (swapped_in_a_loop, rebound), (written_in_place, fed_back)),
        ),
        Check(
            "state and other violations",
            "state",
            1.5,
            finds((created, host_read), (created, second_shapes, created), (cached,)),
        ),
        Check(
            "everything together",
            "everything",
            1.5,
            finds(
                (host_read, own_generator, stale, shapes, rebound, created),
                (created, rebound, own_generator, shapes, stale),
            ),
        ),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.file("one list a launch", 12),
        ANSWERS.file("a function for each category", 12),
        ANSWERS.edited("rows twice", 12, ("return found", "return found + found")),
        ANSWERS.edited("rows in reverse", 12, ("return found", "return found[::-1]")),
        ANSWERS.edited(
            "a difference by method", 12, ("set(launch['reads']) - written", "set(launch['reads']).difference(written)")
        ),
        ANSWERS.edited("not equal", 12, ("old['shapes'] != new['shapes']", "not old['shapes'] == new['shapes']")),
        ANSWERS.edited(
            "flags of the first call",
            12,
            ("new['host_read']", "old['host_read']"),
            ("new['own_generator']", "old['own_generator']"),
        ),
        ANSWERS.edited("no rebound inputs", 7.5, (", 'rebound input': new_outside - old_outside - created", "")),
        ANSWERS.edited(
            "rebound inputs of the first call", 12, ("new_outside - old_outside - created", "old_outside - new_outside")
        ),
        ANSWERS.edited(
            "numbers by their count",
            7.5,
            ("old['numbers'] != new['numbers']", "len(old['numbers']) != len(new['numbers'])"),
        ),
        ANSWERS.edited("no violations", 0, ("return found", "return []")),
        Control(
            "every line",
            "def find_violations(program):\n    return [[each['line'], 'host read'] for each in program['first']]\n",
            0,
        ),
        ANSWERS.edited("no host reads", 7.5, ("'host read': new['host_read'], ", "")),
        ANSWERS.edited("no generators", 9, ("'random state': new['own_generator'], ", "")),
        ANSWERS.edited("no numbers", 7.5, ("'stale number': old['numbers'] != new['numbers'], ", "")),
        ANSWERS.edited("no shapes", 7.5, ("'two shapes': old['shapes'] != new['shapes'], ", "")),
        ANSWERS.edited("temporaries are inputs", 0, ("set(launch['reads']) - written", "set(launch['reads'])")),
        ANSWERS.edited("created state is rebound", 7.5, (" - created", "")),
        ANSWERS.edited(
            "all that the first call wrote is state", 10.5, (" if line not in after for launch", " for launch")
        ),
        ANSWERS.edited(
            "state is what both calls write",
            9,
            ("line not in after for launch", "line in after for launch"),
            trap='Do not report as rebound the state that a `"first call only"` line wrote.',
        ),
        ANSWERS.edited(
            "written by the same launch",
            10.5,
            (
                "outside = set(launch['reads']) - written\n            written |= set(launch['writes'])",
                "written |= set(launch['writes'])\n            outside = set(launch['reads']) - written",
            ),
        ),
        ANSWERS.edited(
            "memory by line, not by launch",
            10.5,
            ("new_outside - old_outside", "new_outside - {at for _, known in before[line] for at in known}"),
        ),
        ANSWERS.edited(
            "shapes of the first argument",
            10.5,
            ("old['shapes'] != new['shapes']", "old['shapes'][:1] != new['shapes'][:1]"),
        ),
        ANSWERS.edited(
            "work of the first call is fine",
            7.5,
            ("[[line, 'first call only'] for line in before if line not in after]", "[]"),
        ),
        ANSWERS.edited(
            "one launch a line",
            10.5,
            ("zip(before[line], pairs, strict=True)", "zip(before[line][:1], pairs[:1], strict=True)"),
        ),
    ),
)
