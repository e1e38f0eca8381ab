#include "cli/explain_parts.h"

int check_replay(struct options *o)
{
	(void)o;
	return EXIT_REFUSED;
}
