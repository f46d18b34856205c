"OpenTelemetry out: what a backend reads is the run, as a tree of spans with the names of the GenAI conventions."
import http.server, json, threading

import explorer_store
import pytest

from treekit.config import UsageError
from treekit.core.method import Trace
from treekit.core.prompts import Completion
from treekit.explorer.runs import open_run
from treekit.exports import opentelemetry
from treekit.exports.opentelemetry import CLIENT, otlp_requests, otlp_value, send_otlp, write_otlp
from treekit.store.run_store import Store


def asked(store, key, reply, **about):
    "A call as a run leaves it in a store."
    messages = [dict(role="system", content="Be brief."), dict(role="user", content=f"asked for {key}")]
    request = json.dumps(dict(messages=messages, parameters=dict(temperature=0.0), endpoint="https://x", model="m"))
    who = dict(method="M", dataset="films", question="q0")
    store.put_calls({key: Completion(reply, 3, 2, model="m-1", latency=0.5, **about)}, request, "m", "https://x", who, [0.25])


@pytest.fixture
def run():
    "Two answers: one of two nodes, of whose calls one is shared and one is gone, and a large tree without calls."
    store, tree = Store(), Trace()
    top = tree.add("question", "who?", queries=["who"], hits=[dict(id="p", title="P", score=2.0)])
    top.calls.append("a")
    tree.add("answer", "Ada", parent=top).calls.extend(["a", "b", "gone"])
    asked(store, "a", "Ada", thinking="Who was it?")
    asked(store, "b", "Ada it is", finish="length")
    return open_run(store, explorer_store.kept(store, "one", [tree, explorer_store.grown(40)]))


def plain(value):
    [(kind, inner)] = value.items()
    return [plain(v) for v in inner["values"]] if kind == "arrayValue" else int(inner) if kind == "intValue" else inner


def spans_of(request):
    [resource] = request["resourceSpans"]
    [scoped] = resource["scopeSpans"]
    return [span | dict(attributes={a["key"]: plain(a["value"]) for a in span["attributes"]}) for span in scoped["spans"]]


def test_an_answer_is_a_tree_of_spans(run):
    answers = [(row, spans_of(request)) for row, request in zip(run.rows, otlp_requests(run), strict=True)]
    assert len({spans[0]["traceId"] for _, spans in answers}) == len(answers)
    for row, (top, *spans) in answers:
        known, trace = {top["spanId"]: top}, row.trace
        assert "parentSpanId" not in top and top["name"] == f"invoke_agent {row.method}" and len(top["traceId"]) == 32
        for span in spans:  # parents come first, and enclose their children
            above = known[span["parentSpanId"]]
            assert int(above["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
            assert int(span["endTimeUnixNano"]) <= int(above["endTimeUnixNano"]) and span["traceId"] == top["traceId"]
            known[span["spanId"]] = span
        assert len(known) == 1 + len(spans)
        asked = [s["attributes"] for s in spans if s["kind"] == CLIENT]
        assert [a["treekit.call.key"] for a in asked] == [key for node in trace.walk() for key in node.calls]
        assert len([s for s in spans if "treekit.node.id" in s["attributes"]]) == len(trace.nodes)
        found = [s["attributes"] for s in spans if s["attributes"].get("gen_ai.operation.name") == "retrieval"]
        ids = [d["id"] for a in found for d in json.loads(a["gen_ai.retrieval.documents"])]
        assert ids == [h["id"] for node in trace.walk() for h in node.data.get("hits") or ()]


def test_calls_have_the_names_of_the_conventions(run):
    spans = [s for request in otlp_requests(run) for s in spans_of(request)]
    calls = [s for s in spans if s["kind"] == CLIENT and "treekit.call.missing" not in s["attributes"]]
    assert len(calls) == 3
    assert {p["type"] for p in json.loads(calls[0]["attributes"]["gen_ai.output.messages"])[0]["parts"]} == {"reasoning", "text"}
    assert json.loads(calls[0]["attributes"]["gen_ai.system_instructions"]) == [dict(type="text", content="Be brief.")]
    assert calls[2]["attributes"]["gen_ai.response.finish_reasons"] == ["length"]
    for span in calls:
        a = span["attributes"]
        assert span["name"] == f"chat {a['gen_ai.request.model']}" and a["gen_ai.operation.name"] == "chat" and a["gen_ai.provider.name"]
        [said] = json.loads(a["gen_ai.output.messages"])
        assert said["role"] == "assistant" and said["finish_reason"] in a["gen_ai.response.finish_reasons"]
        assert json.loads(a["gen_ai.input.messages"])[-1]["role"] == "user"
        assert isinstance(a["gen_ai.usage.input_tokens"], int)
    top = next(s for s in spans if s["name"].startswith("invoke_agent"))["attributes"]
    row = run.rows[0]
    assert json.loads(top["gen_ai.input.messages"])[0]["parts"][0]["content"] == row.question.question
    assert top["treekit.golds"] == list(row.question.answers) and top["gen_ai.agent.name"] == row.method


def test_values_are_otlp_s():
    assert otlp_value(True) == dict(boolValue=True) and otlp_value(3) == dict(intValue="3") and otlp_value(0.5) == dict(doubleValue=0.5)
    assert otlp_value(["a", 1]) == dict(arrayValue=dict(values=[dict(stringValue="a"), dict(intValue="1")]))


def test_a_file_has_a_request_a_line_and_comes_out_the_same(run, tmp_path):
    [name] = write_otlp(tmp_path, [run])
    lines = (tmp_path / name).read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(run.rows) and [json.loads(line) for line in lines] == list(otlp_requests(run))


@pytest.fixture
def backend(monkeypatch):
    "Backend that answers with these statuses, one after the other, and then takes everything: its URL, statuses, waits, requests."
    pytest.importorskip("opentelemetry.proto")
    statuses, waited, got = [], [], []
    monkeypatch.setattr(opentelemetry.time, "sleep", waited.append)

    class Backend(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status := statuses.pop(0) if statuses else 200)
            if status == 429: self.send_header("Retry-After", "7")
            self.end_headers()

        def log_message(self, *words): pass
    with http.server.HTTPServer(("127.0.0.1", 0), Backend) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", statuses, waited, got
        server.shutdown()


def test_a_backend_gets_protobuf(run, backend):
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as proto
    url, _, _, got = backend
    assert send_otlp(url, [run]) == send_otlp(f"{url}/v1/traces", [run]) == len(run.rows)
    assert {path for path, *_ in got} == {"/v1/traces"} and {kind for _, kind, _ in got} == {"application/x-protobuf"}
    read = proto.ExportTraceServiceRequest.FromString(got[0][2])
    first = read.resource_spans[0].scope_spans[0].spans[0]
    assert first.trace_id.hex() == spans_of(next(otlp_requests(run)))[0]["traceId"] and first.name.startswith("invoke_agent")


def test_a_busy_backend_gets_a_request_again(run, backend):
    url, statuses, waited, _ = backend
    statuses += [503, 503, 429]
    assert send_otlp(url, [run]) == len(run.rows) and waited == [1, 2, 7]
    statuses += [503] * 9
    with pytest.raises(UsageError, match="503.*0 answers were sent"): send_otlp(url, [run])
    assert statuses == []


def test_a_refusal_is_not_repeated(run, backend):
    url, statuses, waited, _ = backend
    statuses += [200, 404]
    with pytest.raises(UsageError, match="404.*1 answers were sent"): send_otlp(url, [run])
    assert waited == []


def test_a_backend_that_is_not_there_is_one_line(run):
    pytest.importorskip("opentelemetry.proto")
    with pytest.raises(UsageError, match="start the backend"): send_otlp("http://127.0.0.1:9", [run])
