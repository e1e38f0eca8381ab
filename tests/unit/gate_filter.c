/*
 * A gate as a program, for tests with real TLS and HTTP programs: gate_filter splice|http|tcp HOST
 * PORT. In: messages of one letter (C: the client's bytes, S: the server's), four bytes of length,
 * the bytes. Out, for each: one letter (o open, a again, b blind, r refuse), four bytes: how many
 * of the client's may go; behind r four bytes of length and the reason's name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/sniff.h"

static uint8_t held[SNIFF_HELD_MAX * 2];

static void answer(struct sniff *g, enum sniff_say say, uint32_t release)
{
	const char *name = verdict_reason_name((enum verdict_reason)g->reason);
	uint32_t n = (uint32_t)strlen(name);

	putchar("oabr"[say]);
	fwrite(&release, 4, 1, stdout);
	if (say == SNIFF_REFUSE) {
		fwrite(&n, 4, 1, stdout);
		fputs(name, stdout);
	}
	fflush(stdout);
}

int main(int argc, char **argv)
{
	struct host host;
	struct sniff g;
	size_t have = 0;
	uint32_t n;
	int letter;

	if (argc != 4 || host_read(argv[2], strlen(argv[2]), &host) != HOST_FINE)
		return 2;
	sniff_init(&g,
		   argv[1][0] == 's'   ? RULE_SPLICE
		   : argv[1][0] == 'h' ? RULE_HTTP
				       : RULE_TCP,
		   &host, (uint16_t)atoi(argv[3]));
	while ((letter = getchar()) != EOF) {
		size_t release = 0, start = letter == 'C' ? have : 0;
		static uint8_t server[1 << 20];
		enum sniff_say say;
		uint8_t *to = letter == 'C' ? held + have : server;

		if (fread(&n, 4, 1, stdin) != 1 ||
		    n > (letter == 'C' ? sizeof(held) - start : sizeof(server)) ||
		    fread(to, 1, n, stdin) != n)
			return 1;
		if (letter == 'S') {
			answer(&g, sniff_server(&g, server, n), 0);
			continue;
		}
		have += n;
		say = sniff_client(&g, held, have, &release);
		answer(&g, say, (uint32_t)release);
		memmove(held, held + release, have - release);
		have -= release;
	}
	return 0;
}
