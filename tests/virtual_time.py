"An event loop whose seconds pass at once: it waits for threads, and where nobody works, its clock goes on to the next timer."

import asyncio, selectors

from treekit.experiments.concurrency import CountedThreads


class _Ahead(selectors.DefaultSelector):
    "A selector that moves the clock instead of waiting."

    loop = None

    def select(self, timeout=None):
        if timeout is None or timeout <= 0:
            return super().select(timeout)  # somebody has to come, or there is something to do
        if self.loop.threads.at_work:
            return super().select(0.01)
        ready = super().select(0)
        if not ready:
            self.loop.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    "`time()` is in virtual seconds."

    def __init__(self):
        self.now, selector = 0.0, _Ahead()
        super().__init__(selector)
        selector.loop = self
        self.set_default_executor(CountedThreads())

    def set_default_executor(self, executor):
        "A run brings threads of its own, which are counted, too."
        super().set_default_executor(executor)
        self.threads = executor

    def time(self):
        return self.now


def run(main):
    "What a coroutine returns, and the virtual seconds that it took."
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        loop = runner.get_loop()
        return runner.run(main), loop.now
