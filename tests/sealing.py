"""A new seal for files of plans that tests have changed."""

from meshprep_runtime.plan.file.seal import write_seal


def seal(path, version):
    """Seal a file that is otherwise complete."""
    with open(path, "r+b") as file:
        write_seal(file, version)
