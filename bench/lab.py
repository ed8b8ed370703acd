"""tools/lab for the programs here that measure between its hosts."""
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def codecs_of(text):
    """The codecs of a list; their own options are separated by commas too: "topk:k=32,none" is two codecs."""
    return re.split(r",(?=[a-z0-9]+(?:[:,]|$))", text)


def lab(*arguments):
    """Runs it; when it fails, says what it said and ends."""
    arguments = [str(a) for a in arguments]
    ran = subprocess.run([ROOT / "tools/lab", *arguments], env=os.environ | AS_ROOT, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if ran.returncode != 0:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: tools/lab {' '.join(arguments)}:\n{ran.stdout}")
