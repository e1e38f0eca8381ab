"""process.user: the name of the sandbox's user, and its home."""


def run(t, policy, script="id -un; id -gn; cd; pwd; echo $USER $LOGNAME; touch x; ls"):
    ws = t.workspace({"ward.yaml": "version: 1\n" + policy})
    return t.ward("run", "-p", "ward.yaml", "--", "sh", "-c", script, cwd=ws)


def test_process_user(t):
    r = run(t, "process: {user: user}\n")
    t.equal((r.rc, r.out), (0, "user\nuser\n/home/user\nuser user\nx\n"))
    r = run(t, "process: {user: user}\n", "id -u; ls /home; touch /home/y; ls -ld /home/agent")
    t.equal((r.rc != 0, r.out), (True, "1000\nuser\n"))
    r = run(t, "")
    t.equal(r.out, "agent\nagent\n/home/agent\nagent agent\nx\n")


def test_process_user_is_refused(t):
    for policy, word in (("process: {user: root}", "not a user's name"),
                         ("process: {user: nobody}", "not a user's name"),
                         ("process: {user: Upper}", "not a user's name"),
                         ("process: {user: 7up}", "not a user's name"),
                         ("process: {user: a.b}", "not a user's name"),
                         ("process: {user: a/b}", "process.user"),
                         ("process: {user: x}\nfilesystem: {home: kept}", "process.user")):
        r = run(t, policy + "\n")
        t.equal((policy, r.rc), (policy, 125))
        t.contains(r.err, word)
