import os
import signal
import threading

import pytest

from neuralbayes.training.loop import deferred_signals


@pytest.fixture
def unharmed():
    """Handlers that raise nothing, so a failing test does not end pytest."""
    received = []
    earlier = {
        s: signal.signal(s, lambda signum, frame: received.append(signum)) for s in (signal.SIGINT, signal.SIGTERM)
    }
    yield received
    for signum, handler in earlier.items():
        signal.signal(signum, handler)


def test_a_second_signal_does_not_wait(unharmed):
    def block():
        with deferred_signals():
            os.kill(os.getpid(), signal.SIGINT)
            assert unharmed == []
            os.kill(os.getpid(), signal.SIGINT)
            assert unharmed == [signal.SIGINT]

    with pytest.raises(KeyboardInterrupt):
        block()


def test_handlers_come_back_after_an_error(unharmed):
    handler = signal.getsignal(signal.SIGINT)
    with pytest.raises(ZeroDivisionError), deferred_signals():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGINT) is handler


def test_other_threads_leave_handlers_alone(unharmed):
    handler = signal.getsignal(signal.SIGINT)
    found = []

    def work():
        with deferred_signals():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [handler]
