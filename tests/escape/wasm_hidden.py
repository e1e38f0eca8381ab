"""A module reads a file that the policy hides, by links, by renaming what is around it, and by
listing.

layer: hide
control: the same C as a program without a sandbox
"""
OPTIONS = ["--set", 'filesystem.hide=["sub/hidden.txt"]']
WASM = r"""
int main(int argc, char **argv)
{
	began();
	show("sub/hidden.txt");
	symlink("sub/hidden.txt", "soft");
	show("soft");
	link("sub/hidden.txt", "hard");
	show("hard");
	rename("sub/hidden.txt", "other.txt");
	show("other.txt");
	rename("sub", "sub2");
	show("sub2/hidden.txt");
	return 0;
}
"""


def scene(s):
    s.t.write(s.ws, {"sub/hidden.txt": s.token})
