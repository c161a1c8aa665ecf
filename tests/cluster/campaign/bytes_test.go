package campaign

import "math"

// everyFifthByte kills the controller after each fifth byte of each answer, questions about its own rights included.
func everyFifthByte(asked []answer) (faults []fault) {
	for _, one := range asked {
		for at := 0; at < one.Bytes; at += 5 {
			faults = append(faults, fault{request: one.request, Moment: within, Byte: at, Kill: true})
		}
	}
	return scattered(faults)
}

// scattered puts places into an order in which each stretch is spread over all of them, the same in every run.
func scattered(faults []fault) []fault {
	if len(faults) == 0 {
		return nil
	}
	step := int(float64(len(faults)) * (math.Sqrt(5) - 1) / 2) // the golden section leaves the most even gaps
	for divisor(step, len(faults)) != 1 {
		step++
	}
	spread := make([]fault, len(faults))
	for i := range faults {
		spread[i] = faults[i*step%len(faults)]
	}
	return spread
}

func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// fewBytes are in the middle of an answer to a write, and of a list.
func fewBytes(f fault, _ int) bool {
	return f.N == 1 && (f.What == "patch jobs" && f.Byte == 1000 || f.What == "watch pods" && f.Byte == 5000)
}
