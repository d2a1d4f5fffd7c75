/* Wine 8 has no bcryptprimitives.dll. A Go program takes one function of it. */
#include <windows.h>

BOOLEAN NTAPI SystemFunction036(PVOID data, ULONG size); /* advapi32: random bytes */

__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size)
{
	while (size > 0) {
		ULONG part = size > 0x10000 ? 0x10000 : (ULONG)size;
		if (!SystemFunction036(data, part))
			return FALSE;
		data += part;
		size -= part;
	}
	return TRUE;
}
