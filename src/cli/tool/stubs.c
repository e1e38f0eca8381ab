#include "cli/tool/parts.h"
int tool_init(struct options *o){(void)o;return 1;}
int tool_check(struct options *o){(void)o;return 1;}
