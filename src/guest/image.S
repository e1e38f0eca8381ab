/* The freestanding ward-init, as built beside this file. */
	.section .rodata
	.globl guest_init_begin, guest_init_end
	.hidden guest_init_begin, guest_init_end
	.balign 4096
guest_init_begin:
	.incbin WARD_INIT
guest_init_end:
	.byte 0
	.section .note.GNU-stack, "", @progbits
