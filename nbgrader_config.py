"""nbgrader's configuration: notebooks/ is the source, everything that is made from it lies below the ignored work/.

`nbgrader` from the command line, Formgrader in JupyterLab and this project's own commands all read this one file. The
environment variable COURSE_WORK moves what is made somewhere else, as the demo does; COURSE_EXCHANGE moves the folder
through which nbgrader hands assignments out and takes them in.
"""

import os
import sys
from pathlib import Path

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
# the exchange's inbound folder can be written by everybody: see whose a hand-in is, and take its newest one
c.ExchangeFactory.collect = "autograder.classroom.nbgrader.collect.CheckedCollect"
c.ExchangeFactory.release_feedback = "autograder.classroom.nbgrader.feedback.ReleaseToEach"
c.ExchangeCollect.update = True
c.Exchange.timezone = "UTC"
c.NbGraderAPI.timezone = "UTC"

# a submission that cannot be read becomes an empty one with a reason, instead of vanishing from gradebook and CSV
c.Autograde.exporter_class = "autograder.classroom.nbgrader.reading.SubmissionExporter"
c.Autograde.pre_convert_hook = "autograder.classroom.nbgrader.guard.before_autograde"
c.Autograde.sanitize_preprocessors = [
    "nbgrader.preprocessors.ClearOutput",
    "autograder.classroom.nbgrader.repair.RepairMetadata",
    # before our own report is added, which it would escape too
    "nbconvert.preprocessors.sanitize.SanitizeHTML",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.SanitizeHTML.enabled = True
c.Autograde.autograde_preprocessors = [
    # where nbgrader would run the notebook in a kernel with the instructor's rights
    "autograder.classroom.nbgrader.outside_kernel.GradeOutsideKernel",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.GradeOutsideKernel.journal = str(WORK / "journal.jsonl")
c.GradeOutsideKernel.seed_file = str(WORK / "secret_seed")
c.GradeOutsideKernel.aside = str(WORK / "aside")
c.GenerateFeedback.exporter_class = "autograder.classroom.nbgrader.feedback_page.FeedbackExporter"
c.ExportApp.plugin_class = "autograder.classroom.nbgrader.marks_csv.MarksExport"
# what is taken for each day that a submission is late: share_per_day = 0.1 takes a tenth of the points earned
c.AssignLatePenalties.plugin_class = "autograder.classroom.nbgrader.late.LatePenalty"
c.LatePenalty.share_per_day = 0.0
# submissions that a learning platform gives out as one archive: put it into work/downloaded/ASSIGNMENT/archive, then
# run `nbgrader zip_collect ASSIGNMENT`
c.ZipCollectApp.downloaded_directory = os.path.relpath(WORK / "downloaded", ROOT)  # nbgrader puts the root before it
c.ZipCollectApp.extractor_plugin = "autograder.classroom.uploads.NotebookExtractor"
c.ZipCollectApp.collector_plugin = "autograder.classroom.uploads.UploadCollector"
c.UploadCollector.db_url = c.CourseDirectory.db_url
c.ClearSolutions.code_stub = {
    "python": 'raise NotImplementedError("Write your answer here, then run the check below.")'
}
