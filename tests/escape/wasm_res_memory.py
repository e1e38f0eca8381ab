"""A module takes more memory than allowed, and uses it.

layer: limits
control: the same C as a program without a sandbox gets it
"""
OPTIONS = ["--memory", "160M"]
WASM = r"""
int main(int argc, char **argv)
{
	static volatile char *kept[512];
	int held = 0, sum = 0;

	began();
	for (; held < 512; held++) {
		kept[held] = malloc(1 << 20);
		if (!kept[held])
			break;
		for (int i = 0; i < 1 << 20; i += 4096)
			kept[held][i] = 1;
	}
	for (int i = 0; i < held; i++)
		sum += kept[i][4096];
	held = sum;
	printf("held: %d\n", held);
	return 0;
}
"""


def escaped(s, r):
    return "held:" in r.out and int(r.out.split("held:")[1]) > 200
