package storage

import (
	"context"
	"errors"
	"testing"

	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
)

var errCorrupt = errors.New("bits flipped")

var writes = []runner{
	{name: "RunTestCreate", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestCreate(ctx, t, f, f.kept)
	}},
	{name: "RunTestCreateWithKeyExist", run: plain(storagetesting.RunTestCreateWithKeyExist)},
	{name: "RunTestKeySchema", run: plain(storagetesting.RunTestKeySchema)},
	{name: "RunTestUnconditionalDelete", run: plain(storagetesting.RunTestUnconditionalDelete)},
	{name: "RunTestConditionalDelete", run: plain(storagetesting.RunTestConditionalDelete)},
	{name: "RunTestDeleteWithSuggestion", run: plain(storagetesting.RunTestDeleteWithSuggestion)},
	{name: "RunTestDeleteWithSuggestionAndConflict", run: plain(storagetesting.RunTestDeleteWithSuggestionAndConflict)},
	{name: "RunTestDeleteWithConflict", run: plain(storagetesting.RunTestDeleteWithConflict)},
	{name: "RunTestDeleteWithSuggestionOfDeletedObject", run: plain(storagetesting.RunTestDeleteWithSuggestionOfDeletedObject)},
	{name: "RunTestValidateDeletionWithSuggestion", run: plain(storagetesting.RunTestValidateDeletionWithSuggestion)},
	{name: "RunTestValidateDeletionWithOnlySuggestionValid", run: plain(storagetesting.RunTestValidateDeletionWithOnlySuggestionValid)},
	{name: "RunTestPreconditionalDeleteWithSuggestion", run: plain(storagetesting.RunTestPreconditionalDeleteWithSuggestion)},
	{name: "RunTestPreconditionalDeleteWithOnlySuggestionPass", run: plain(storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass)},
	{name: "RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx, t, f, f.codec.broken.Store)
	}},
	{name: "RunTestDeleteExpectedTransformOrDecodeError", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, f, f.codec.broken.Store)
	}},
	{name: "RunTestDeleteExpectedTransformOrDecodeError", run: func(ctx context.Context, t *testing.T, f *fixture) {
		b := &brittle{Transformer: identity.NewEncryptCheckTransformer()}
		f.Transform(func(value.Transformer) value.Transformer { return b })
		storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, f, b.broken.Store)
	}},
	{name: "RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, f)
	}},
	{name: "RunTestGuaranteedUpdate", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, newPrefixed(f), f.kept)
	}},
	{name: "RunTestGuaranteedUpdateChecksStoredData", run: withPrefix(storagetesting.RunTestGuaranteedUpdateChecksStoredData)},
	{name: "RunTestGuaranteedUpdateWithConflict", run: plain(storagetesting.RunTestGuaranteedUpdateWithConflict)},
	{name: "RunTestGuaranteedUpdateWithSuggestionAndConflict", run: plain(storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict)},
	{name: "RunTestTransformationFailure", run: withPrefix(storagetesting.RunTestTransformationFailure)},
}

var reads = []runner{
	{name: "RunTestGet", run: plain(storagetesting.RunTestGet)},
	{name: "RunTestList", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestList(ctx, t, f, f.compact, false, nil)
	}},
	{name: "RunTestConsistentList", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestConsistentList(ctx, t, f, f.advance, f.lags, true, true)
	}},
	{name: "RunTestGetListNonRecursive", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, f.advance, f)
	}},
	{name: "RunTestGetListRecursivePrefix", run: plain(storagetesting.RunTestGetListRecursivePrefix)},
	{name: "RunTestGetListWithoutErrorAggregation", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, newPrefixed(f), errCorrupt)
	}},
	// The validations that these three take count the calls to etcd; they may be nil.
	{name: "RunTestListContinuation", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListContinuation(ctx, t, f, nil)
	}},
	{name: "RunTestListPaginationRareObject", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListPaginationRareObject(ctx, t, f, nil)
	}},
	{name: "RunTestListContinuationWithFilter", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, f, nil)
	}},
	{name: "RunTestListInconsistentContinuation", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListInconsistentContinuation(ctx, t, f, f.compact)
	}},
	{name: "RunTestListResourceVersionMatch", run: withPrefix(storagetesting.RunTestListResourceVersionMatch)},
	{name: "RunTestListPaging", run: plain(storagetesting.RunTestListPaging)},
	{name: "RunTestNamespaceScopedList", run: plain(storagetesting.RunTestNamespaceScopedList)},
	{name: "RunTestStats", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestStats(ctx, t, f, f.codec, identity.NewEncryptCheckTransformer(), false)
	}},
	{name: "RunTestCompactRevision", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestCompactRevision(ctx, t, f, f.advance, f.compact)
	}},
}

var watches = []runner{
	{name: "RunTestWatch", run: plain(storagetesting.RunTestWatch)},
	{name: "RunTestWatchFromZero", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchFromZero(ctx, t, f, f.compact)
	}},
	{name: "RunTestDeleteTriggerWatch", run: plain(storagetesting.RunTestDeleteTriggerWatch)},
	{name: "RunTestWatchFromNonZero", run: plain(storagetesting.RunTestWatchFromNonZero)},
	{name: "RunTestDelayedWatchDelivery", run: plain(storagetesting.RunTestDelayedWatchDelivery)},
	{name: "RunTestWatchError", run: withPrefix(storagetesting.RunTestWatchError)},
	{name: "RunTestWatchWithUnsafeDelete", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, newPrefixed(f), errCorrupt)
	}},
	{name: "RunTestWatchContextCancel", run: plain(storagetesting.RunTestWatchContextCancel)},
	{name: "RunTestWatcherTimeout", run: plain(storagetesting.RunTestWatcherTimeout)},
	{name: "RunTestWatchDeleteEventObjectHaveLatestRV", run: plain(storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV)},
	{name: "RunTestWatchInitializationSignal", run: plain(storagetesting.RunTestWatchInitializationSignal)},
	{name: "RunOptionalTestProgressNotify", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunOptionalTestProgressNotify(ctx, t, f, f.advance)
	}},
	{name: "RunTestClusterScopedWatch", run: plain(storagetesting.RunTestClusterScopedWatch)},
	{name: "RunTestNamespaceScopedWatch", run: plain(storagetesting.RunTestNamespaceScopedWatch)},
	{name: "RunTestWatchDispatchBookmarkEvents", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, f, true)
	}},
	{name: "RunTestOptionalWatchBookmarksWithCorrectResourceVersion", run: plain(storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion)},
	{name: "RunSendInitialEventsBackwardCompatibility", run: plain(storagetesting.RunSendInitialEventsBackwardCompatibility)},
	{name: "RunWatchSemantics", serial: true, run: plain(storagetesting.RunWatchSemantics)},
	{name: "RunWatchSemanticInitialEventsExtended", serial: true, run: plain(storagetesting.RunWatchSemanticInitialEventsExtended)},
	{name: "RunWatchListMatchSingle", serial: true, run: plain(storagetesting.RunWatchListMatchSingle)},
	{name: "RunWatchErrorIsBlockingFurtherEvents", run: withPrefix(storagetesting.RunWatchErrorIsBlockingFurtherEvents)},
}
