"""A real boto3 inside, with a key that it never has, against a server that judges each signature by
botocore (harness/aws_server.py).

Debian's python3-boto3, or one that lies in a directory that WARD_TEST_BOTO3 names (`pip install
--target`).
"""
import json
import os

from harness import by_turns, timeout
from harness.world import HERE, serve, trusted_world

PORT, REGION = 9482, "eu-west-1"
KEY = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYzEXAMPLEKEY")
TOKEN = "FwoGZXIvYXdzEXAMPLE//token+with=signs0123456789"
NAMES = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
# seconds for one call, under load; botocore by itself waits one second for the word to go on
SLOWEST = 8

CLIENT = r"""
import io, json, os, sys, threading, time
sys.path[:0] = sys.argv[1:]
import boto3
from botocore.config import Config
config = dict(retries={"total_max_attempts": 1}, read_timeout=30, connect_timeout=20)
session = boto3.Session(region_name="eu-west-1")
s3 = session.client("s3", endpoint_url="https://web.test:9482",
                    config=Config(s3={"addressing_style": "path"}, **config))
table = session.client("dynamodb", endpoint_url="https://web.test:9482", config=Config(**config))
def say(name, call):
    began = time.monotonic()
    try:
        got = call()
    except Exception as error:
        got = "%s: %s" % (type(error).__name__, error)
    print(json.dumps([name, got, time.monotonic() - began]), flush=True)
expects = []
s3.meta.events.register("before-send.s3.PutObject",
                        lambda request, **_: expects.append("100-continue"
                                                            in str(request.headers.get("Expect"))))
def put(key, body):
    return s3.put_object(Bucket="b", Key=key, Body=body)["ResponseMetadata"]["HTTPStatusCode"]
def same(key, body):
    return s3.get_object(Bucket="b", Key=key)["Body"].read() == body
"""

CALLS = r"""
bodies = {"empty": b"", "small": b"x" * 10, "a b+c/\u00fc~(1)=&.txt": b"odd" * 7,
          "page": bytes(range(256)) * 16, "large": os.urandom(3 << 20)}
for key, body in bodies.items():
    say("put " + key, lambda: put(key, body))
    say("get " + key, lambda: same(key, body))
say("stream", lambda: put("stream", io.BytesIO(b"s" * 70000)))
say("file", lambda: s3.upload_file(__file__, "b", "file"))
say("file again", lambda: same("file", open(__file__, "rb").read()))
say("list",
    lambda: [c["Key"] for c in s3.list_objects_v2(Bucket="b", Prefix="a b/\u00fc",
                                                  Delimiter="/")["Contents"]])
say("delete",
    lambda: s3.delete_object(Bucket="b", Key="small")["ResponseMetadata"]["HTTPStatusCode"])
say("item",
    lambda: table.put_item(TableName="table",
                           Item={"k": {"S": "v" * 2000}})["ResponseMetadata"]["HTTPStatusCode"])
def beside(i):
    say("beside %d" % i, lambda: put("beside%d" % i, b"y" * (i + 1)))
threads = [threading.Thread(target=beside, args=(i,)) for i in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
say("asked to go on", lambda: [len(expects), sum(expects) > 10])
"""


def find(t):
    """Where boto3 lies: what goes into PYTHONPATH, "" for Debian's own; skips where there is
    none."""
    at = os.environ.get("WARD_TEST_BOTO3", "")
    probe = t.run("/usr/bin/python3", "-c", "import boto3", env={"PYTHONPATH": at} if at else None)
    if probe.rc != 0:
        t.skip("there is no boto3 for /usr/bin/python3 here: apt-get install python3-boto3")
    return at


def inside(t, script, token=""):
    at, world = find(t), trusted_world(t)
    log = os.path.join(world.dir, "aws")
    server = ["env", f"PYTHONPATH={at}", "/usr/bin/python3", os.path.join(HERE, "aws_server.py"),
              world.certificates, str(PORT), log, *KEY, token]
    serve(t, world, server, PORT)
    names = NAMES if token else NAMES[:2]
    grant = {"name": "aws", "source": "env:" + ",".join(names), "hosts": ["web.test"],
             "sigv4": f"{REGION}/*"}
    path = os.path.join(t.fresh_dir("policy"), "ward.yaml")
    places = [at] if at else []
    t.write(os.path.dirname(path), {"ward.yaml": json.dumps({
        "version": 1,
        "filesystem": {"host_mounts": [{"path": place, "mode": "read_only"} for place in places]},
        "network": {"mode": "restricted",
                    "egress_allowlist": [{"host": "web.test", "ports": [PORT], "mode": "inspect"}]},
        "credentials": {"mode": "just_in_time", "grants": [grant]}})})
    ws = t.workspace({"client.py": CLIENT + script})
    r = world.ward("run", "-p", path, "--", "/usr/bin/python3", "client.py", *places, cwd=ws,
                   env=dict(zip(names, [*KEY, token])), timeout=150)
    t.equal(r.rc, 0, f"exit code ({r.out} {r.err})")
    for secret in (KEY[1], *filter(None, [token])):
        t.check(secret not in r.out + r.err, "the secret is inside")
    return [json.loads(line) for line in r.out.splitlines()], [json.loads(line)
                                                               for line in (t.read(log)
                                                                            or "").splitlines()]


@by_turns
@timeout(180)
def test_calls(t):
    """Objects of all sizes and names, with Expect: 100-continue as boto3 sends it; every signature
    is the true key's, nothing waits."""
    said, seen = inside(t, CALLS)
    wanted = {"file": None, "list": ["k"], "delete": 204, "asked to go on": [19, True]}
    for name, got, seconds in said:
        t.equal(got, wanted.get(name, True if name.startswith("get ") or name == "file again"
                                else 200), name)
        t.check(seconds < SLOWEST, f"{name} took {seconds:.1f} s")
    t.equal([line for line in seen if line[2] != "fine"], [], "signatures")
    t.equal((len(said), len(seen)), (29, 28), "calls")


@timeout(180)
def test_a_token(t):
    """The same with a session token, which the server gets and the program inside never has."""
    said, seen = inside(t, 'say("small", lambda: put("small", b"x" * 10))\nsay("again", lambda: '
                        'same("small", b"x" * 10))\nsay("item", lambda: '
                        'bool(table.put_item(TableName="table", Item={})))\n', TOKEN)
    t.equal([line[:2] for line in said], [["small", 200], ["again", True], ["item", True]])
    t.equal([line[2] for line in seen], ["fine"] * 3, "signatures")
