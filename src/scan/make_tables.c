/*
 * Runs when ward is built: writes the rules of tables/scan.def, compiled for any processor, as C.
 * In: the rows. Out: two databases on standard output, scan_tables.h declares them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "scan/detect.h"

#define BYTES_A_LINE 20

static int write_one(const char *name, unsigned kinds)
{
	struct ward_err e = { 0 };
	char *bytes = NULL;
	size_t n = 0;

	if (detect_rules_serialize(kinds, &bytes, &n, &e) < 0) {
		fprintf(stderr, "make_tables: %s\n", e.why);
		return 1;
	}
	printf("const uint8_t %s[] = {", name);
	for (size_t i = 0; i < n; i++)
		printf("%s%d,", i % BYTES_A_LINE ? "" : "\n\t", (unsigned char)bytes[i]);
	printf("\n};\nconst size_t %s_bytes = sizeof(%s);\n", name, name);
	free(bytes);
	return 0;
}

int main(void)
{
	printf("/* Made by src/scan/make_tables.c. */\n#include \"scan/scan_tables.h\"\n\n");
	return write_one("scan_table_secrets", DETECT_SECRET) ||
	       write_one("scan_table_all", DETECT_SECRET | DETECT_PII);
}
