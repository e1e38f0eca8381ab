"""How a run ends: exit codes, as the shell has them."""


def test_exit_code_is_the_commands(t):
    for code in (0, 1, 7, 255):
        r = t.ward("run", "--", "/bin/sh", "-c", f"exit {code}", cwd=t.workspace())
        t.equal(r.rc, code, "exit code")
