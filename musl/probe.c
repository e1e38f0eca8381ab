/* Links what ward links: musl, the distribution's libyaml, and of glibc no more than shim.c has. */
#include <linux/openat2.h>
#include <yaml.h>

#include "shim.c"

int main(void)
{
	yaml_parser_t parser;
	yaml_document_t document;

	return !yaml_parser_initialize(&parser) || !yaml_parser_load(&parser, &document);
}
