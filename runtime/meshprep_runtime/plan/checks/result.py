"""The outcome of checking a file of a plan or of parts."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CheckResult:
    """The outcome of a check: findings, empty for a right plan, and a verdict in words."""

    findings: list[str]
    verdict: str

    def to_dict(self) -> dict[str, Any]:
        return {"ok": not self.findings, "findings": self.findings, "verdict": self.verdict}
