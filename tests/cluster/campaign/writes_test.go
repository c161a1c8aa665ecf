package campaign

// everyWrite kills the controller, or cuts its connection, before and after each of its writes.
func everyWrite(asked []answer) (faults []fault) {
	for _, one := range asked {
		if one.writes() {
			for _, kill := range []bool{true, false} {
				for _, m := range []moment{before, after} {
					faults = append(faults, fault{request: one.request, Moment: m, Kill: kill})
				}
			}
		}
	}
	return faults
}

// fewWrites are the crashes that lose what must not be done twice.
func fewWrites(f fault, _ int) bool {
	switch f.What {
	case "patch jobs", "create pods/eviction":
		return f.N == 1 && f.Kill && f.Moment == after
	case "patch configmaps device-health-incidents":
		return f.N == 2 && f.Kill && f.Moment == before
	}
	return false
}
