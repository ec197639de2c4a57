import pickle

from app.core.errors import Fault, InvalidInput, MethodUnavailable, PriorshiftError
from app.engines.engine import TooManyGroups


def test_errors_come_back_from_other_processes() -> None:
    errors: list[PriorshiftError] = [
        InvalidInput([Fault("/a", "is wrong", 3), Fault("/b", "too")], 17),
        MethodUnavailable("em", "it is slow"),
        TooManyGroups(7),
    ]
    for error in errors:
        found = pickle.loads(pickle.dumps(error))  # between our own processes, as Dask does
        assert type(found) is type(error)
        assert vars(found) == vars(error)
        assert str(found) == str(error)
