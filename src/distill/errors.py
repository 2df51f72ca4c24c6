"""The one exception a user is meant to see."""


class DistillError(Exception):
    """Bad input or a limit not met: one clear line (what, where, what to do) and an exit status.

    Entry points print the message without a traceback and exit with `status`; anything else that
    escapes is a bug and keeps its traceback.
    """

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status
