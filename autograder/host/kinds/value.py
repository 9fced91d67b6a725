"""Answers that are functions from plain data to plain data."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from autograder.host.artifacts import Artifact
from autograder.host.channel import MalformedAnswerError
from autograder.host.kinds.graph import GraphAnswer, read_graph
from autograder.host.kinds.returned_values import read_values
from autograder.host.session import Session, another
from autograder.protocol import GraphData, Json, Result
from autograder.protocol.requests.answers import Ask, AskEach, PackedValue, RunNamedPass
from autograder.protocol.requests.loads import LoadTrial, RunTrial


class ValueAnswer:
    """Ask the student's function one question at a time; the host makes its own counts in `clean`."""

    def __init__(self, session: Session, clean: Session | None = None) -> None:
        self._session, self._clean = session, clean
        self.others: list[Session] = []

    @property
    def clean(self) -> Session:
        """Return a worker that never sees the student's code."""
        assert self._clean is not None, "every grading has one"
        return self._clean

    @property
    def elsewhere(self) -> "ValueAnswer":
        """Return the same answer in a second worker, which knows nothing of the questions to the first."""
        if not self.others:
            self.others.append(another(self._session))
        return ValueAnswer(self.others[0])

    def ask(self, question: Json, *keys: str) -> Json:
        """Return the function's answer as plain data: None, bool, int, float, str, lists and dicts.

        Of a dict only the entries called `keys` are returned, if there are any, so that another entry, which is no
        plain data, costs its own check only.
        """
        reply, _ = self._session.call(Ask(question, keys))
        return reply.body.value

    def run_named_pass(self, options: Mapping[str, Json], graph: GraphData) -> tuple[Json, Artifact]:
        """Return the name of the pass that the function makes with these options, and the graph as the pass left it.

        The host rebuilds the graph; raises `CheckFailedError` if it holds what is not allowed.
        """
        reply, _ = self._session.call(RunNamedPass(options, graph))
        artifact = read_graph(
            Result(reply.body.graph, reply.tensors), "After the pass ", max_nodes=4 * len(graph["nodes"]) + 64
        )
        return reply.body.value, artifact

    def run(self, artifact: Artifact, inputs: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Return what a rebuilt graph gives for these inputs, in a worker that never sees the student's code."""
        return tuple(GraphAnswer(self._session, self.clean).run(artifact, inputs).outputs)

    def recount(self, text: str, function: str, question: Json) -> Any:
        """Return what a function of the host's `text` gives for a question, in a worker that never sees the answer.

        The function takes the question as JSON text and returns plain data.
        """
        self.clean.reload(LoadTrial(text), ())
        reply, _ = self.clean.call(RunTrial(function, 0, False, PackedValue(json.dumps(question), ())), ())
        return read_values(reply).value

    def ask_each(self, questions: Sequence[Json]) -> list[Json]:
        """Return the function's answer to each question; the function is called once for each, in this order."""
        reply, _ = self._session.call(AskEach(tuple(questions)))
        found = reply.body.value
        if not isinstance(found, list) or len(found) != len(questions):
            raise MalformedAnswerError
        return found
