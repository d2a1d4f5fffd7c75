// Package sim simulates federations: one home and three worker hubs with real
// stores and real relays, a fault network between them, and a script drawn from
// a seed that works, cuts and crashes, steps clocks, and puts the files of a
// worker hub back to an older copy. It has tests only.
//
// WAVEHUB_SIM_SEED replays one seed: the same script and the same draws of
// faults; how goroutines interleave is the scheduler's. WAVEHUB_TEST_SCALE is
// the number of seeds: small 20, medium 200 (40 under the race detector), full
// 10 000.
package sim
