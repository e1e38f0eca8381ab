"""A module changes what lies outside: writes, truncates, replaces, removes, makes files and
directories there, by paths and by links.

layer: directories that the runtime opens beforehand, Landlock, mount namespace
control: the same C as a program without a sandbox
"""
import os

WASM = r"""
static void spoil(const char *dir)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	char path[4][4200];
	FILE *f;
	int fd;

	for (int i = 0; i < 4; i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s", dir, names[i]);
	f = fopen(path[0], "a");
	if (f) {
		fputs("SPOILED", f);
		fclose(f);
	}
	fd = open(path[1], O_WRONLY | O_TRUNC);
	if (fd >= 0)
		close(fd);
	unlink(path[2]);
	rename("mine", path[3]);
	snprintf(path[0], sizeof(path[0]), "%s/new", dir);
	fd = open(path[0], O_WRONLY | O_CREAT | O_EXCL, 0644);
	if (fd >= 0)
		close(fd);
	snprintf(path[0], sizeof(path[0]), "%s/newdir", dir);
	mkdir(path[0], 0755);
	snprintf(path[0], sizeof(path[0]), "%s/newlink", dir);
	symlink("x", path[0]);
}

int main(int argc, char **argv)
{
	char path[4200];

	began();
	spoil(argv[1]);
	snprintf(path, sizeof(path), "../../../../../../../../../../..%s", argv[1]);
	spoil(path);
	symlink(argv[1], "way");
	spoil("way");
	symlink("/", "top");
	snprintf(path, sizeof(path), "top%s", argv[1]);
	spoil(path);
	spoil("prepared");
	return 0;
}
"""


def scene(s):
    s.victim_dir = s.t.fresh_dir("victim")
    s.t.write(s.victim_dir, dict.fromkeys("abcd", "AS-IT-WAS"))
    s.t.write(s.ws, {"mine": "MINE"})
    os.symlink(s.victim_dir, os.path.join(s.ws, "prepared"))
    s.argv = [s.victim_dir]


def escaped(s, r):
    return sorted(os.listdir(s.victim_dir)) != list("abcd") or any(s.t.read(s.victim_dir, n)
                                                                   != "AS-IT-WAS" for n in "abcd")
