"""A session calls one answer in a real sandbox, and every bad end has its name."""

import time

import pytest
import torch

from autograder.exercises import find
from autograder.host.kinds.callable import CallableAnswer, Case
from autograder.host.kinds.value import ValueAnswer
from autograder.host.records import ExerciseStatus
from autograder.host.sandbox import SandboxError, open_sandbox
from autograder.host.session import AnswerFailedError, Session, _work
from autograder.protocol.requests.answers import Ask
from autograder.protocol.requests.loads import LoadAnswer, LoadGraph, LoadLowering, Part


def session(text, kind="value", wall_s=20.0):
    load = LoadAnswer(kind, "f", (Part("answer f", text),))
    return Session(open_sandbox(), load, wall_s=wall_s)


def test_values_cross_as_plain_data():
    made = session("def f(q):\n    return {'twice': [q * 2, None, True, 0.5, 'x'], 'tuple': (1,)}\n")
    assert ValueAnswer(made).ask(4) == {"twice": [8, None, True, 0.5, "x"], "tuple": [1]}
    made.close()


@pytest.mark.parametrize(
    ("exercise_id", "is_imported"), [("16_compile_task", True), ("15_launch_bound", False)], ids=["16", "15"]
)
def test_lightning_is_imported_once_for_all_workers_where_the_set_up_imports_it(exercise_id, is_imported):
    parts = (
        Part("setup", find(exercise_id).setup),
        Part("answer f", "import lightning\n"),
    )  # what an answer says is not read
    assert ("lightning" in _work(LoadAnswer("value", "f", parts))) is is_imported


def test_tensors_cross_with_strides_gradients_and_mutations():
    made = session(
        "def f(x, y, scale):\n    y.add_(1)\n    return (x * y.detach() * scale, x.stride()[0] * x.new_ones(()))\n",
        "callable",
    )
    x, y = torch.randn(3, 4).t(), torch.randn(4, 3)
    case = Case((x, y), {"scale": 2.0})
    reply = CallableAnswer(made).call(case, cotangents=[torch.ones(4, 3), torch.ones(())], wrt=[0])
    made.close()
    assert reply.mutated == (1,)
    assert torch.equal(reply.outputs[0], x * (y + 1) * 2)
    assert reply.outputs[1] == 1  # the stride of a transposed tensor
    assert torch.equal(reply.gradients[0], (y + 1) * 2)
    assert reply.aliases == ()


def test_an_output_in_an_inputs_memory_is_reported():
    made = session("def f(x):\n    return x.view(-1)\n", "callable")
    assert CallableAnswer(made).call(Case((torch.ones(2, 2),))).aliases == (0,)
    made.close()


def test_a_limit_on_files_is_told_to_whoever_met_it():
    made = session("def f(q):\n    with open('/tmp/x', 'wb') as file:\n        file.truncate(300 << 20)\n")
    with pytest.raises(AnswerFailedError, match="A file may have 256 MB, and all files together 1024 MB") as raised:
        ValueAnswer(made).ask(1)
    made.close()
    assert raised.value.status is ExerciseStatus.STUDENT_ERROR


ENDS = [
    ("def f(q):\n    while True: pass\n", ExerciseStatus.TIMED_OUT, True),
    ("import os\ndef f(q):\n    os._exit(3)\n", ExerciseStatus.KILLED, False),
    ("import os, signal\ndef f(q):\n    os.kill(os.getpid(), signal.SIGSEGV)\n", ExerciseStatus.KILLED, False),
    ("def f(q):\n    return 1 / 0\n", ExerciseStatus.STUDENT_ERROR, False),
    ("import os\ndef f(q):\n    os.write(3, b'x' * 100)\n", ExerciseStatus.MALFORMED_ANSWER, True),
    ("def f(q):\n    return object()\n", ExerciseStatus.STUDENT_ERROR, False),
    ("def f(q):\n    x = []\n    for _ in range(9): x = [x, x] * 9\n    return x\n", ExerciseStatus, None),
    ("raise KeyboardInterrupt\n", ExerciseStatus.STUDENT_ERROR, True),
]


@pytest.mark.parametrize(("text", "status", "fatal"), ENDS, ids=[str(e[0].split("\n")[1].strip()) for e in ENDS])
def test_every_bad_end_of_a_call_has_a_status(text, status, fatal):
    endless = status is ExerciseStatus.TIMED_OUT or fatal is None
    made = session(text, wall_s=1.0 if endless else 5.0)
    with pytest.raises(AnswerFailedError) as failed:
        ValueAnswer(made).ask(1)
    made.close()
    if fatal is not None:
        assert (failed.value.status, failed.value.fatal) == (status, fatal)


MESSAGES = [
    ("def f(q):\n    return object()\n", "the result is a object; answer with None"),
    ("def g(q):\n    return 1\n", "The answer defines no function `f`."),
    ("from course_lib.errors import GraphError\ndef f(q):\n    raise GraphError('x')\n", "GraphError: x in line 3 of "),
    ("def f(q):\n    return 1 / 0\n", "ZeroDivisionError: division by zero in line 2 of answer f (`return 1 / 0`)."),
]


@pytest.mark.parametrize(("text", "message"), MESSAGES, ids=["value", "entry point", "raised by the answer", "error"])
def test_a_sentence_of_the_worker_is_the_whole_message_and_all_else_is_told_with_type_and_line(text, message):
    made = session(text)
    with pytest.raises(AnswerFailedError) as failed:
        ValueAnswer(made).ask(1)
    made.close()
    assert failed.value.message.startswith(message)


@pytest.mark.parametrize(
    ("text", "unanswered"),
    [
        ("def f(q):\n    raise NotImplementedError\n", True),
        ("import torch\ndef f(q):\n    return torch.nn.Module()(q)\n", False),
    ],
)
def test_only_the_stub_is_not_answered_yet_and_not_what_pytorch_has_not_implemented(text, unanswered):
    made = session(text)
    with pytest.raises(AnswerFailedError) as raised:
        ValueAnswer(made).ask(1)
    made.close()
    assert raised.value.unanswered is unanswered
    assert raised.value.message.startswith("Not answered yet." if unanswered else "NotImplementedError: Module")


def test_a_worker_that_ended_is_started_again_and_then_given_up():
    made = session("import os\ndef f(q):\n    return 1 if q else os._exit(0)\n")
    answer = ValueAnswer(made)
    for _ in range(3):
        with pytest.raises(AnswerFailedError):
            answer.ask(0)
    assert answer.ask(1) == 1
    with pytest.raises(AnswerFailedError):
        answer.ask(0)
    with pytest.raises(AnswerFailedError, match="each of 4 starts") as failed:
        answer.ask(1)
    assert failed.value.fatal
    made.close()


def test_bytes_after_the_last_answer_turn_up_at_the_end():
    made = session(
        "import os, threading\ndef f(q):\n    threading.Timer(0.2, os.write, (3, b'late')).start()\n    return 1\n"
    )
    assert ValueAnswer(made).ask(1) == 1
    time.sleep(0.6)
    with pytest.raises(AnswerFailedError, match="answered twice"):
        made.close()


def test_a_worker_sees_neither_environment_nor_home_folders_nor_the_host():
    made = session(
        "import os, sys\n"
        "def f(q):\n"
        "    seen = {p: os.listdir(p) for p in ('/', '/home', '/course', '/course/autograder') if os.path.isdir(p)}\n"
        "    return [sorted(os.environ), sys.argv, seen]\n"
    )
    environ, argv, seen = ValueAnswer(made).ask(1)
    made.close()
    assert not {"HOSTNAME", "SSH_AUTH_SOCK", "VIRTUAL_ENV"} & set(environ)
    assert argv == ["worker"]
    assert not seen.get("/home")
    assert sorted(seen["/course/autograder"]) == ["__init__.py", "protocol", "worker"]


def test_an_exercise_may_ask_for_two_functions_of_one_answer():
    made = session("def f(x):\n    return x + 1\n\ndef g(x):\n    return x * 3\n", "callable")
    answer, case = CallableAnswer(made), Case((torch.ones(2),))
    assert torch.equal(answer.call(case).outputs[0], torch.full((2,), 2.0))
    assert torch.equal(answer.function("g").call(case).outputs[0], torch.full((2,), 3.0))
    with pytest.raises(AnswerFailedError, match="no function `h`"):
        answer.function("h").call(case)
    made.close()


class NeverStarts:
    """A sandbox that only notes what work was announced."""

    def __init__(self):
        self.announced = ()

    def expect(self, *work, masked):
        self.announced = work

    def start(self, **_):
        raise SandboxError("not today")


def of_kind(kind, setup):
    cells = (Part("setup", setup), Part("answer f", "import course_lib, torch._dynamo"))
    return LoadAnswer(kind, "f", cells)


@pytest.mark.parametrize(
    ("load", "announced"),
    [
        (LoadGraph({}, (), None), ("graphs",)),
        (LoadLowering(), ("graphs", "lowering")),
        (of_kind("graph", "import torch"), ("graphs",)),
        (of_kind("callable", "import torch"), ()),
        (of_kind("value", "import course_lib.graph"), ("graphs",)),
        (of_kind("value", ""), ()),
    ],
)
def test_what_a_zygote_imports_follows_from_the_exercise_and_never_from_an_answer(load, announced):
    sandbox = NeverStarts()

    with pytest.raises(SandboxError):
        Session(sandbox, load).call_with(Ask(1), ())

    assert sandbox.announced == announced
