"100,000 articles of the fictional wiki, streamed on one core: seconds of processor time, and how little memory."

import subprocess, sys

CODE = """
import hashlib, resource, time
from treekit.synthetic.generate import SyntheticWiki
started, digest, n = time.process_time(), hashlib.sha256(), 0
for article in SyntheticWiki(0, 100_000).articles():
    digest.update(repr(article).encode())
    n += 1
print(n, time.process_time() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, digest.hexdigest())
"""


def test_a_hundred_thousand_articles():
    n, seconds, megabytes, _ = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
    ).stdout.split()
    print(f"\n{n} articles: {float(seconds):.1f} s of processor time, {float(megabytes):.0f} MB")
    assert int(n) == 100_000 and float(seconds) < 120 and float(megabytes) < 1000
