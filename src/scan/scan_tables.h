/* The databases that make_tables.c has compiled: for detect_rules_load(). */
#ifndef WARD_SCAN_SCAN_TABLES_H
#define WARD_SCAN_SCAN_TABLES_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t scan_table_secrets[], scan_table_all[];
extern const size_t scan_table_secrets_bytes, scan_table_all_bytes;

#endif
