"""The exceptions that meshprep raises: one base, so that a caller catches one name."""


class MeshprepError(Exception):
    """Something a user can mend: the message says what is wrong, where, and what to do.

    The base of every exception that meshprep raises. Messages are one line, without a trailing full
    stop, and name the file, line, set or element.
    """


class PlanError(MeshprepError):
    """A plan that is damaged, of an unknown version, or made for another mesh."""


class MissingPackageError(MeshprepError):
    """An optional package is needed; the message names the command that installs it."""


class ProofError(RuntimeError):
    """A plan that meshprep made does not pass its proof: a fault of meshprep, not of the input."""
