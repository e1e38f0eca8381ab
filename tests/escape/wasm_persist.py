"""A module plants what the operator would run later: hooks of git, settings of git, .envrc, an
editor's tasks.

layer: protect
control: the same C as a program without a sandbox
"""
import os

NEEDS = ["git"]
WASM = r"""
static void plant(const char *path)
{
	FILE *f;

	unlink(path);
	f = fopen(path, "w");
	if (f) {
		fputs("EVIL\n", f);
		fclose(f);
	}
}

int main(int argc, char **argv)
{
	began();
	plant(".git/hooks/pre-commit");
	plant(".git/config");
	rename(".git/hooks", ".git/away");
	mkdir(".git/hooks", 0755);
	plant(".git/hooks/post-checkout");
	rename(".git", "git");
	mkdir(".git", 0755);
	plant(".git/config");
	plant(".envrc");
	mkdir(".vscode", 0755);
	plant(".vscode/tasks.json");
	return 0;
}
"""
PLANTED = (".git/hooks/pre-commit", ".git/hooks/post-checkout", ".git/config", ".envrc",
           ".vscode/tasks.json")


def scene(s):
    s.ws = s.cwd = s.t.git_repo()


def escaped(s, r):
    return any("EVIL" in (s.t.read(s.ws, path) or "")
               for path in PLANTED) or not os.path.isdir(os.path.join(s.ws, ".git/hooks"))
