"""git over https with a token that the sandbox never holds, in the forms of GitHub, GitLab and
Gitea."""
import base64
import json
import os
import pathlib

from harness import by_turns, timeout
from harness.world import need, serve, trusted_world

HERE = pathlib.Path(__file__).resolve().parent.parent / "harness"
TOKEN = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"


@by_turns
@timeout(120)
def test_forms(t):
    """Clone and push work with each form; without the grant the server refuses."""
    git, = need(t, "git")
    world = trusted_world(t)
    repo = t.git_repo({"README": "over HTTPS\n"})
    bare = os.path.join(world.dir, "repo.git")
    t.run(git, "clone", "-q", "--bare", repo, bare, check=True)
    users = ("x-access-token", "oauth2", "git")
    wanted = ["Basic " + base64.b64encode(f"{user}:{TOKEN}".encode()).decode() for user in users]
    for number, (user, value) in enumerate(zip(users, wanted)):
        port = 9447 + number
        serve(t, world, ["/usr/bin/python3", str(HERE / "git_server.py"), world.certificates,
                         str(port), world.dir, value], port)
        document = {"version": 1,
                    "network": {"mode": "restricted", "egress_allowlist": [
                        {"host": "web.test", "ports": [port], "mode": "inspect"}]},
                    "credentials": {"mode": "just_in_time", "grants": [
                        {"name": "token", "source": "env:TOKEN", "hosts": ["web.test"],
                         "basic": user}]}}
        script = f"""
git clone -q https://web.test:{port}/repo.git there && cd there && cat README
git -c user.name=A -c user.email=a@b commit -q --allow-empty -m {user}
git push -q origin HEAD:refs/heads/{user} && env | grep -c {TOKEN[:12]}
"""
        policy = os.path.join(t.fresh_dir("policy"), "ward.yaml")
        t.write(os.path.dirname(policy), {"ward.yaml": json.dumps(document)})
        r = world.ward("run", "-p", policy, "--", "/bin/sh", "-c", script, cwd=t.workspace(),
                       env={"TOKEN": TOKEN}, timeout=60)
        t.equal(r.out.splitlines(), ["over HTTPS", "0"], f"{user}: {r.err}")
        log = t.run(git, "-C", bare, "-c", "safe.directory=*", "log", "-1", "--format=%s", user,
                    root=True)
        t.equal(log.out.strip(), user, f"what was pushed as {user}")
        del document["credentials"]
        t.write(os.path.dirname(policy), {"ward.yaml": json.dumps(document)})
        r = world.ward("run", "-p", policy, "--", "git", "-c", "core.askPass=/bin/false", "clone",
                       "-q", f"https://web.test:{port}/repo.git", "gone", cwd=t.workspace(),
                       env={"TOKEN": TOKEN, "GIT_TERMINAL_PROMPT": "0"}, timeout=60)
        t.check(r.rc != 0, f"{user}: the server wants the token")
