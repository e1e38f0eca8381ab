/* A WASI module that is compiled in no time: one word and its argument. */
#include <string.h>
#include <unistd.h>

static void say(const char *text)
{
	write(1, text, strlen(text));
	write(1, "\n", 1);
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	int pages = 0;

	if (strcmp(word, "spin") == 0)
		for (volatile unsigned i = 1; i; i += 2)
			;
	if (strcmp(word, "sleep") == 0) {
		say("up");
		sleep(1000);
	}
	if (strcmp(word, "grow") == 0) {
		while (__builtin_wasm_memory_grow(0, 16) != (unsigned long)-1)
			pages++;
		say(pages < 64 ? "few" : pages < 96 ? "enough" : "too many");
	}
	if (strcmp(word, "say") == 0)
		say(argv[2]);
	if (strcmp(word, "trap") == 0)
		__builtin_trap();
	return strcmp(word, "seven") == 0 ? 7 : 0;
}
