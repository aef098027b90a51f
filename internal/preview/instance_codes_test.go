package preview

// instanceReasons is one way to make each code fire that only application containers have.
func instanceReasons() []reason {
	return []reason{
		{code: CodeNotAnInstance}, {code: CodeDuplicateIdentity}, {code: CodeContractDiffers}, {code: CodeDeletionProtected},
		{code: CodeNodeRequired}, {code: CodeStorageAmbiguous}, {code: CodeImageUnresolvable}, {code: CodeImageVolumeUnbacked},
		{code: CodeVolumeShrink}, {code: CodeVolumeStorage}, {code: CodeVolumeUnconfigured},
	}
}
