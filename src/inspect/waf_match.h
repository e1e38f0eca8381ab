/* Between waf_main.c and waf_match.cpp. */
#ifndef WARD_INSPECT_WAF_MATCH_H
#define WARD_INSPECT_WAF_MATCH_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
void waf_listen(modsecurity::ModSecurity *engine);
#else
/* From here on waf_matched() is called for each rule that matches. */
void waf_listen(ModSecurity *engine);
#endif

/* about: what the transaction was begun with. */
void waf_matched(void *about, int rule, int severity, const char *message, size_t n);

#ifdef __cplusplus
}
#endif
#endif
