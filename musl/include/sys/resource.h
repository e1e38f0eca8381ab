/* In glibc the resource is an enumeration. */
#ifndef WARD_MUSL_SYS_RESOURCE_H
#define WARD_MUSL_SYS_RESOURCE_H

#include_next <sys/resource.h>

typedef int __rlimit_resource_t;

#endif
