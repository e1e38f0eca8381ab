"""A module reads a file outside by every path that could lead there: absolute, with dots, by links
that it makes, through a file as a directory, renamed or linked into its own directory.

layer: directories that the runtime opens beforehand, Landlock, mount namespace
control: the same C as a program without a sandbox
"""
WASM = r"""
int main(int argc, char **argv)
{
	static const char *const dots = "../../../../../../../../../../../..";
	char path[4200];

	began();
	show(argv[1]);
	snprintf(path, sizeof(path), "%s%s", dots, argv[1]);
	show(path);
	mkdir("sub", 0755);
	snprintf(path, sizeof(path), "sub/../%s%s", dots, argv[1]);
	show(path);
	snprintf(path, sizeof(path), "./%s/%s", argv[0], argv[1]);
	show(path);
	symlink(argv[1], "absolute");
	show("absolute");
	snprintf(path, sizeof(path), "%s%s", dots, argv[1]);
	symlink(path, "relative");
	show("relative");
	symlink("..", "up1");
	symlink("up1/..", "up2");
	symlink("up2/../../../../../../../..", "up3");
	snprintf(path, sizeof(path), "up3%s", argv[1]);
	show(path);
	symlink("/", "top");
	snprintf(path, sizeof(path), "top%s", argv[1]);
	show(path);
	snprintf(path, sizeof(path), "sub/./../top/.%s", argv[1]);
	show(path);
	link(argv[1], "hard");
	show("hard");
	linkat(AT_FDCWD, "absolute", AT_FDCWD, "hard2", AT_SYMLINK_FOLLOW);
	show("hard2");
	show("prepared");
	show("inner/../prepared-dir/secret.txt");
	rename(argv[1], "moved");
	show("moved");
	return 0;
}
"""


def scene(s):
    import os
    path = s.secret()
    s.argv = [path]
    os.symlink(path, os.path.join(s.ws, "prepared"))	# links of before count as well
    os.symlink(s.outside, os.path.join(s.ws, "prepared-dir"))
    os.mkdir(os.path.join(s.ws, "inner"))
