/* Numbers with units, as policies and options write them. Pure functions; all return 0 or -EINVAL /
 * -ERANGE. */
#ifndef WARD_POLICY_UNITS_H
#define WARD_POLICY_UNITS_H

#include <stdint.h>

#include "base/buf.h"

/* 512, 64k, 4Gi, 1.5G, 10MB (decimal) */
must_check int units_parse_size(const char *text, uint64_t *ret_bytes);
must_check int units_parse_cpus(const char *text, uint64_t *ret_milli); /* 2, 0.5, 500m */
/* 300, 0.5, 5m, 1h30m, 250ms */
must_check int units_parse_seconds(const char *text, uint64_t *ret_ms);
must_check int units_parse_money(const char *text, uint64_t *ret_millionths); /* 5, 0.25 */
must_check int units_parse_uint(const char *text, uint64_t *ret_value);
/* Short human forms: "4 GiB", "1.5 MiB", "250 ms", "12.3 s". */
void units_format_size(uint64_t bytes, char *out, size_t n);
void units_put_money(uint64_t millionths, struct buf *out); /* 5.00, 0.0125 */
struct json;
/* The same as a text of a JSON object. */
void units_json_money(struct json *j, const char *key, uint64_t millionths);
void units_format_ms(uint64_t ms, char *out, size_t n);

#endif
