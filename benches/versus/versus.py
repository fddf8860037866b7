"""Runs three benchmark clients on one server and prints what each costs and what each reports.

CPU is user and system time of the client and of all processes it started and waited for. Since
each client also needs CPU to start and to report, the cost of a chunk is the difference between a
long and a short run, divided by the difference in chunks; the same for a request.

The server's own clock says when it had read each request and when it was about to write each
token. What a client reports beyond that, the client made (or the machine, between the two).
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import urllib.request

CLIENTS = ("canary", "aiperf", "guidellm")

# Zero delay, 50 streams: requests of the short and of the long run.
CHUNK = {"canary": (300, 12300), "aiperf": (300, 2300), "guidellm": (100, 1100)}
CHUNK_TOKENS = 256
REQUEST = {"canary": (500, 40500), "aiperf": (500, 4500), "guidellm": (300, 2300)}
REQUEST_TOKENS = 5
STREAMS = 50

# First token after 100 ms, then one every 10 ms: streams and requests.
TIMES = ((1, 10), (100, 500), (500, 1500))
TIMES_TOKENS = 128

# Longest run of one client, seconds: with start, report and a busy machine. Later it is stopped.
LIMIT = 900
# For ending after being asked to, seconds.
GRACE = 20


class Failed(Exception):
    """A client did not do its run. What it said is in the file named."""


class Server:
    """The benchmark's own server; ends with the block."""

    def __init__(self, program, tokens, ttft_ms, itl_ms):
        self.command = [program, "part:server", str(tokens), str(ttft_ms), str(itl_ms), "true"]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        self.url = f"http://{self.address}"
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def times(self):
        """TTFT and mean ITL of every answer since the last call, milliseconds."""
        with urllib.request.urlopen(self.url + "/times") as answer:
            lines = answer.read().decode().splitlines()
        ttft, itl = [], []
        for line in lines:
            _, *numbers = line.split(" ")
            read, *tokens = map(int, numbers)
            ttft.append((tokens[0] - read) / 1e6)
            if len(tokens) > 1:
                itl.append((tokens[-1] - tokens[0]) / 1e6 / (len(tokens) - 1))
        return ttft, itl


def quantile(values, percent):
    values = sorted(values)
    rank = -(-len(values) * percent // 100)
    return values[max(rank, 1) - 1]


def canary(options, url, streams, requests, tokens, out):
    return [
        options.canary, "bench", "--url", url, "--ui", "none",
        "--concurrency", str(streams), "--request-count", str(requests),
        "--isl", "16", "--osl", str(tokens), "--artifact-dir", str(out),
    ]


def aiperf(options, url, streams, requests, tokens, out):
    return [
        options.aiperf, "profile", "--model", "bench", "--url", url,
        "--endpoint-type", "chat", "--streaming", "--tokenizer", options.model,
        "--isl", "16", "--osl", str(tokens),
        # Else it counts by its tokenizer, which is not the server's, and its ITL is of that.
        "--use-server-token-count",
        "--concurrency", str(streams), "--request-count", str(requests),
        "--ui", "none", "--no-gpu-telemetry", "--no-server-metrics", "--artifact-dir", str(out),
    ]


def guidellm(options, url, streams, requests, tokens, out):
    return [
        options.guidellm, "run",
        "--backend", f"kind=openai_http,target={url},model=bench",
        "--profile", f"kind=concurrent,streams={streams}",
        "--constraint", f"kind=max_requests,count={requests}",
        "--data", f"kind=synthetic_text,prompt_tokens=16,output_tokens={tokens}",
        "--tokenizer", f"kind=hf_auto,model={options.model}",
        "--output", f"kind=json,path={out}/out.json", "--disable-console",
    ]


def reported(client, out):
    """TTFT and ITL in milliseconds as (p50, p99), and tokens per second, as the client has it."""
    if client == "canary":
        summary = json.loads((out / "summary.json").read_text())
        metrics, rate = summary["metrics"], summary["throughput"]["output_tokens_per_s"]
        # A metric that no request had is null: without delay all tokens may come in one read.
        pair = lambda name: tuple((metrics[name] or {}).get(key) for key in ("p50", "p99"))
        return pair("ttft"), pair("itl"), rate
    if client == "aiperf":
        summary = json.loads((out / "profile_export_aiperf.json").read_text())
        pair = lambda name: (summary[name]["p50"], summary[name]["p99"])
        rate = summary.get("output_token_throughput", {}).get("avg")
        return pair("time_to_first_token"), pair("inter_token_latency"), rate
    metrics = json.loads((out / "out.json").read_text())["benchmarks"][0]["metrics"]

    def pair(name):
        found = metrics[name]["successful"]["percentiles"]
        return found["p50"], found["p99"]

    rate = metrics["output_tokens_per_second"]["successful"]["mean"]
    return pair("time_to_first_token_ms"), pair("inter_token_latency_ms"), rate


def over(process, seconds):
    """Whether `process` has ended in time. It keeps its id until it is waited for."""
    end = time.monotonic() + seconds
    while not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def finished(command, out):
    """Runs `command` to its end; gives its status and the resources it used."""
    with open(out / "output.txt", "w") as output:
        # It leads a group of its own, which is stopped as one: some clients start many processes.
        process = subprocess.Popen(
            command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, cwd=out,
            start_new_session=True,
        )
    in_time = False
    try:
        in_time = over(process, LIMIT)
        if not in_time:
            os.killpg(process.pid, signal.SIGTERM)
            over(process, GRACE)
    finally:
        # The leader is not waited for yet, so the id is the group's for sure.
        os.killpg(process.pid, signal.SIGKILL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if not in_time:
        raise Failed(f"not over after {LIMIT} s, see {out}/output.txt")
    return process.returncode, usage


def run(options, client, pace, streams, requests):
    """One run of one client on a server of its own."""
    tokens, ttft_ms, itl_ms = pace
    name = f"{client}-{tokens}x{itl_ms}ms-{streams}-{requests}"
    kept = pathlib.Path(options.keep, name + ".json")
    if kept.exists():
        return json.loads(kept.read_text())
    out = pathlib.Path(options.keep, name).absolute()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    with Server(options.server, tokens, ttft_ms, itl_ms) as server:
        command = globals()[client](options, server.url, streams, requests, tokens, out)
        load, begin = os.getloadavg()[0], time.monotonic()
        status, usage = finished(command, out)
        wall = time.monotonic() - begin
        # Our own benchmark ends with 3 where the machine was late.
        if status not in ((0, 3) if client == "canary" else (0,)):
            raise Failed(f"status {status}, see {out}/output.txt")
        ttft, itl = server.times()
    if len(ttft) < requests:
        raise Failed(f"{len(ttft)} of {requests} requests were answered, see {out}/output.txt")
    told = reported(client, out)
    result = {
        "cpu": usage.ru_utime + usage.ru_stime,
        "wall": wall,
        "answers": len(ttft),
        "load": load,
        "ttft": told[0],
        "itl": told[1],
        "rate": told[2],
        "true_ttft": (quantile(ttft, 50), quantile(ttft, 99)),
        "true_itl": (quantile(itl, 50), quantile(itl, 99)),
    }
    kept.write_text(json.dumps(result))
    return result


def cost(options, client, sizes, tokens):
    """CPU seconds for one more request, by a long and a short run."""
    short, long = (run(options, client, (tokens, 0, 0), STREAMS, n) for n in sizes[client])
    return (long["cpu"] - short["cpu"]) / (sizes[client][1] - sizes[client][0]), short, long


def shown(value):
    """A time; too few requests have no p99."""
    return "–" if value is None else f"{value:.2f}"


def ratio(own, value):
    return "" if own is None else f"{value / own:10.1f}x"


def print_costs(options, wanted, parts):
    own = {}
    for part, sizes, tokens, what in (
        ("chunk", CHUNK, CHUNK_TOKENS, "us of CPU for a chunk"),
        ("request", REQUEST, REQUEST_TOKENS, "us of CPU for a request of 5 chunks"),
    ):
        if part not in parts:
            continue
        print(f"\n{what}: zero delay, {STREAMS} streams, {tokens} tokens")
        print(f"{'':<10}{'us':>10}{'ours':>11}   runs: requests, CPU s, wall s, load before")
        for client in wanted:
            try:
                request, short, long = cost(options, client, sizes, tokens)
            except Failed as failed:
                print(f"{client:<10}  {failed}", flush=True)
                continue
            value = request / (tokens if part == "chunk" else 1) * 1e6
            if client == "canary":
                own[part] = value
            runs = "; ".join(
                f"{n}, {r['cpu']:.1f}, {r['wall']:.1f}, {r['load']:.1f}"
                for n, r in zip(sizes[client], (short, long))
            )
            print(f"{client:<10}{value:>10.2f}{ratio(own.get(part), value):>11}   {runs}", flush=True)


def print_times(options, wanted):
    print(f"\ntimes, ms: {TIMES_TOKENS} tokens, the first after 100 ms, then one every 10 ms")
    print("p50 / p99; true: by the server's own clock in the same run; CPU with start and report")
    header = ("TTFT true", "reported", "ITL true", "reported", "tokens/s", "CPU s", "wall s", "load")
    print(f"{'':<10}{'streams':>8}" + "".join(f"{name:>17}" for name in header))
    for streams, requests in TIMES:
        for client in wanted:
            try:
                r = run(options, client, (TIMES_TOKENS, 100, 10), streams, requests)
            except Failed as failed:
                print(f"{client:<10}{streams:>8}  {failed}", flush=True)
                continue
            pairs = [
                " / ".join(shown(value) for value in r[pair])
                for pair in ("true_ttft", "ttft", "true_itl", "itl")
            ]
            cells = pairs + [f"{r['rate']:.0f}", f"{r['cpu']:.2f}", f"{r['wall']:.1f}", f"{r['load']:.1f}"]
            print(f"{client:<10}{streams:>8}" + "".join(f"{cell:>17}" for cell in cells), flush=True)


def main():
    parser = argparse.ArgumentParser()
    for name in ("server", "canary", "aiperf", "guidellm", "model", "keep"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--only", default=",".join(CLIENTS))
    parser.add_argument("--parts", default="chunk,request,times")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    for name in ("server", "canary", "aiperf", "guidellm", "model"):
        setattr(options, name, os.path.abspath(getattr(options, name)))
    if options.again:
        shutil.rmtree(options.keep, ignore_errors=True)
    os.makedirs(options.keep, exist_ok=True)
    wanted = [client for client in CLIENTS if client in options.only.split(",")]
    print(f"{os.cpu_count()} cores, kernel {os.uname().release}, {time.strftime('%F %H:%M')}")
    print_costs(options, wanted, options.parts.split(","))
    if "times" in options.parts.split(","):
        print_times(options, wanted)


main()
