"""The recipe of `nbs/docs/howto/jupyterhub_and_colab.md` in a real JupyterHub: a working folder at the first start, and a kernel.

HUB=DIR names an environment with `jupyterhub`, `jupyterlab` and a `configurable-http-proxy` (npm's, or pip's port of it)."""

import json, os, re, secrets, shutil, signal, socket, subprocess, sys, time
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "nbs/docs/howto/jupyterhub_and_colab.md"


def recipe():
    "The configuration in the guide."
    [code] = [
        c for c in re.findall(r"```python\n(.*?)```", RECIPE.read_text(encoding="utf-8"), re.S) if "c.Spawner" in c
    ]
    return code


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def call(url, token, method="GET", body=None):
    request = Request(
        url, None if body is None else json.dumps(body).encode(), {"Authorization": f"token {token}"}, method=method
    )
    with urlopen(request, timeout=60) as reply:
        return reply.status, json.loads(reply.read() or b"null")


def until(seconds, what, f):
    "Wait for a true result."
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if found := f():
                return found
        except (HTTPError, URLError, ConnectionError, TimeoutError) as e:
            said = e
        else:
            said = "not yet"
        time.sleep(0.5)
    raise AssertionError(f"{what}: {said}")


@pytest.fixture
def hub(tmp_path):
    "A running hub with the guide's configuration; yields its address and an administrator's token."
    folder = Path(os.environ.get("HUB", "/nowhere"), "bin")
    path = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
    programs = {
        name: shutil.which(name, path=path)
        for name in ("jupyterhub", "jupyterhub-singleuser", "configurable-http-proxy")
    }
    if missing := [name for name, found in programs.items() if not found]:
        pytest.skip(
            f"no {', '.join(missing)}: pip install jupyterhub jupyterlab configurable-http-proxy in an environment, and HUB=DIR"
        )
    port, api, inner, token = free_port(), free_port(), free_port(), secrets.token_hex(16)
    homes, kernels = tmp_path / "homes", tmp_path / "jupyter"
    spec = kernels / "kernels" / "python3"
    spec.mkdir(parents=True)
    argv = [
        sys.executable,
        "-m",
        "ipykernel_launcher",
        "-f",
        "{connection_file}",
    ]  # a user's kernel is the Python with the kit
    (spec / "kernel.json").write_text(json.dumps(dict(argv=argv, display_name="Python 3", language="python")))
    (kernels / "jupyter_server_config.json").write_text(
        json.dumps(dict(ServerApp=dict(allow_root=True)))
    )  # where the tests run as root
    (tmp_path / "jupyterhub_config.py").write_text(f"""c = get_config()
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_port = {inner}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api}"
c.ConfigurableHTTPProxy.command = {[programs["configurable-http-proxy"]]!r}
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = {secrets.token_hex(8)!r}
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = {str(homes)!r} + "/{{username}}"
c.Spawner.environment = dict(PATH={path!r}, JUPYTER_PATH={str(kernels)!r}, JUPYTER_CONFIG_DIR={str(kernels)!r}, PYTHONPATH="")
c.Spawner.http_timeout = c.Spawner.start_timeout = 300
c.JupyterHub.services = [dict(name="test", api_token={token!r})]
c.JupyterHub.load_roles = [dict(name="test", services=["test"], scopes=["admin:users", "admin:servers", "tokens", "access:servers"])]
{recipe()}""")
    log = open(tmp_path / "hub.log", "w")
    words = [programs["jupyterhub"], "-f", str(tmp_path / "jupyterhub_config.py")]
    own = os.environ | dict(PATH=path, PYTHONPATH="")
    server = subprocess.Popen(words, cwd=tmp_path, env=own, stdout=log, stderr=log, start_new_session=True)
    try:
        until(120, "the hub", lambda: server.poll() is None and call(f"http://127.0.0.1:{port}/hub/api/", token))
        yield f"http://127.0.0.1:{port}", token, homes
    except BaseException:
        print((tmp_path / "hub.log").read_text()[-3000:])
        raise
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
        log.close()


@pytest.mark.slow
def test_a_student_starts_a_server_and_has_a_working_folder(hub):
    base, token, homes = hub
    (homes / "ada").mkdir(parents=True)
    assert call(f"{base}/hub/api/users/ada", token, "POST")[0] == 201
    began = time.monotonic()
    call(f"{base}/hub/api/users/ada/server", token, "POST")
    until(
        300,
        "the student's server",
        lambda: call(f"{base}/hub/api/users/ada", token)[1]["servers"].get("", {}).get("ready"),
    )
    print(f"the first start took {time.monotonic() - began:.0f} s")
    listed = call(f"{base}/user/ada/api/contents/work/nbs/assignments", token)[1]["content"]
    assert "1_retrieval.ipynb" in {f["name"] for f in listed} and "teachers_guide.ipynb" not in {
        f["name"] for f in listed
    }
    kernel = call(f"{base}/user/ada/api/kernels", token, "POST", dict(name="python3", path="work/nbs/assignments"))[1]
    assert kernel["id"]
    stopped = call(f"{base}/hub/api/users/ada/server", token, "DELETE")[0]
    until(60, "the end of the server", lambda: not call(f"{base}/hub/api/users/ada", token)[1]["servers"])
    call(f"{base}/hub/api/users/ada/server", token, "POST")  # the second start leaves the folder alone
    until(
        300, "the second start", lambda: call(f"{base}/hub/api/users/ada", token)[1]["servers"].get("", {}).get("ready")
    )
    assert stopped in (202, 204) and call(f"{base}/user/ada/api/contents/work/nbs", token)[0] == 200
    call(f"{base}/hub/api/users/ada/server", token, "DELETE")
