/* How fast this machine's time stamp counter runs. */
#ifndef WARD_VM_TSC_H
#define WARD_VM_TSC_H

/* In kHz, measured for some milliseconds. */
unsigned long tsc_khz(void);

#endif
