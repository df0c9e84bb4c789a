"""Let tests of Ctrl-C pass in the background, too: a shell starts such processes with SIGINT ignored."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
