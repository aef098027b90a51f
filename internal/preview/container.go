package preview

import "fmt"

// Container judges the reinstall of a container. It is total: whatever the facts are, every volume has two fates with a
// reason, and every reason not to go on is named. Blockers come in the order of the codes; an empty list means that the
// operation may begin.
func Container(f Facts, w Want) Preview {
	j := newJudge(f, w)
	j.judgeIdentity()
	j.judgeRecords()
	if j.readable() {
		j.collect()
		j.decide()
		j.judgeBusy()
		j.judgeShared()
		j.judgeStorages()
		j.judgeKeys()
		j.judgeSnapshots()
		j.judgeHA()
		j.judgeReplication()
		j.judgeBackups()
		j.judgeJobs()
		j.judgeBackupRoom()
		j.judgeSize()
		j.judgeTemplate()
		j.judgeSpace()
		j.judgeNotes()
		j.judgeParking()
		j.judgeRights()
		j.judgeLost()
	}
	p := j.preview(OpReinstall)
	p.Summary = j.summary(fmt.Sprintf("reinstall from %s", templateName(w.Template)), p)
	return p
}
