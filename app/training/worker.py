"""The worker process: one job from standard input, its result to standard output.

Ends by itself when the other end of its input closes: a service that was killed leaves none.
"""

import os
import sys
import threading

from app.training import serialization
from app.training.messages import GROWTH, Growth, Job, learnt_message, refitted_message

POLITENESS = 5


def main() -> None:
    """Read, work, write."""
    # What libraries print must not get into the result.
    output = os.dup(1)
    os.dup2(2, 1)
    os.nice(POLITENESS)
    size = int.from_bytes(sys.stdin.buffer.read(serialization.HEADER), "big")
    message = sys.stdin.buffer.read(size)
    threading.Thread(target=_end_with_the_service, daemon=True).start()
    with os.fdopen(output, "wb") as stream:
        stream.write(answer(message))
    os._exit(0)


def answer(message: bytes) -> bytes:
    """The result of a job; what it cannot do it says in words."""
    from app.training import procedures

    try:
        content, arrays = serialization.decode(message)
        if GROWTH in content:
            return serialization.encode({}, procedures.grow(Growth.of(content, arrays)))
        job = Job.of(content, arrays)
        if job.batch is None:
            return learnt_message(procedures.learn(job.training))
        return refitted_message(procedures.refit(job.training, job.batch, job.max_iterations))
    except MemoryError:
        return serialization.encode(
            {"refused": "needs more memory than there is; send fewer rows"}, {}
        )
    except procedures.ModelTooLarge as error:
        return serialization.encode({"refused": str(error)}, {})
    except ValueError as error:
        first = str(error).partition("\n")[0][:300]
        return serialization.encode({"refused": f"cannot be fitted: {first}"}, {})


def _end_with_the_service() -> None:
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main()
