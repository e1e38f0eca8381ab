"""Runs a program that is set-uid to another user, given read-only by the policy; it must give no
rights.

layer: no_new_privs
control: without a sandbox it runs with the other user's rights
"""
import os
import shutil

NEEDS = ["root"]
C = r"""
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	if (argc > 1) {
		write(2, "[attack began]\n", 15);
		execl(argv[1], argv[1], NULL);
		return 1;
	}
	printf("%s\n", geteuid() != getuid() ? "rights changed" : "no change");
	return 0;
}
"""


def scene(s):
    program = os.path.join(s.outside, "suid")
    shutil.copy(s.t.compile(C), program)
    other = 0 if s.t.as_user == "user" else 1
    with s.t.root():
        os.chown(program, other, other)
        os.chmod(program, 0o6755)
    s.options += ["--ro", s.outside]
    s.argv = [program]


def escaped(s, r):
    return "rights changed" in r.out
