"""A run tries each reference solution in one place: a third by the judge, with hidden checks; the others in notebooks.

With WHOLE=1 both places try all of them. An exercise whose answer another one needs is answered in its notebook too.
"""

import os

from autograder.exercises import all_exercises, find
from tests.drawn import third

JUDGED = third(all_exercises(), name="references")
_NEEDED = {each for exercise in all_exercises() for each in find(exercise).needs}
IN_NOTEBOOKS = [each for each in all_exercises() if os.environ.get("WHOLE") or each in _NEEDED or each not in JUDGED]
