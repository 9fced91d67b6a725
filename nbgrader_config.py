"""nbgrader's configuration: notebooks/ is the source, everything that is made from it lies below the ignored work/.

`nbgrader` from the command line, Formgrader in JupyterLab and this project's own commands all read this one file. The
environment variable COURSE_WORK moves what is made somewhere else, as the demo does; COURSE_EXCHANGE moves the folder
through which nbgrader hands assignments out and takes them in; COURSE_SETTINGS names another file than course.toml.
"""

import os
import sys
from pathlib import Path

from autograder.classroom.nbgrader import hooks
from autograder.course_settings import settings_file

c = get_config()  # noqa: F821  # traitlets defines it for configuration files

ROOT = Path(__file__).resolve().parent
WORK = ROOT / os.environ.get("COURSE_WORK", "work")
# where several people share a machine, this is a folder that all of them can reach
EXCHANGE = ROOT / os.environ.get("COURSE_EXCHANGE", WORK / "exchange")
for folder in (WORK, EXCHANGE):
    folder.mkdir(parents=True, exist_ok=True)

# nbgrader starts alembic by name when it makes a gradebook, and without it leaves a half-made one behind
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"

c.CourseDirectory.course_id = "fusion-course"
c.CourseDirectory.root = str(ROOT)
c.CourseDirectory.source_directory = "notebooks"
for step in ("release", "submitted", "autograded", "feedback", "solution", "source_with_tests"):
    setattr(c.CourseDirectory, f"{step}_directory", str(WORK / step))
c.CourseDirectory.db_url = f"sqlite:///{WORK / 'gradebook.db'}"
c.Exchange.root = str(EXCHANGE)
c.ExchangeCollect.update = True  # take the newest hand-in of each student
c.Exchange.timezone = "UTC"
c.NbGraderAPI.timezone = "UTC"

hooks.install(c)  # all classes of ours that nbgrader uses, each with its reason
c.SanitizeHTML.enabled = True
c.GradeOutsideKernel.journal = str(WORK / "journal.jsonl")
c.GradeOutsideKernel.seed_file = str(WORK / "secret_seed")
c.GradeOutsideKernel.quarantine = str(WORK / "aside")
c.GradeOutsideKernel.settings = str(settings_file(ROOT))
# submissions that a learning platform gives out as one archive: put it into work/downloaded/ASSIGNMENT/archive, then
# run `nbgrader zip_collect ASSIGNMENT`
c.ZipCollectApp.downloaded_directory = os.path.relpath(WORK / "downloaded", ROOT)  # nbgrader puts the root before it
c.UploadCollector.db_url = c.CourseDirectory.db_url
# the time zone of your account on the platform, such as "Europe/Berlin", if it is not `time_zone` of course.toml
c.UploadCollector.timezone = ""
c.ClearSolutions.code_stub = {
    "python": 'raise NotImplementedError("Write your answer here, then run the check below.")'
}
