package storage

import (
	"context"
	"errors"
	"testing"

	storagetesting "k8s.io/apiserver/pkg/storage/testing"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
)

var errCorrupt = errors.New("corrupt object")

var writeTests = []suiteTest{
	{name: "RunTestCreate", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestCreate(ctx, t, f, f.checkStored)
	}},
	{name: "RunTestCreateWithKeyExist", run: withStorage(storagetesting.RunTestCreateWithKeyExist)},
	{name: "RunTestCreateWithTTL", run: withStorage(storagetesting.RunTestCreateWithTTL)},
	{name: "RunTestKeySchema", run: withStorage(storagetesting.RunTestKeySchema)},
	{name: "RunTestUnconditionalDelete", run: withStorage(storagetesting.RunTestUnconditionalDelete)},
	{name: "RunTestConditionalDelete", run: withStorage(storagetesting.RunTestConditionalDelete)},
	{name: "RunTestDeleteWithSuggestion", run: withStorage(storagetesting.RunTestDeleteWithSuggestion)},
	{
		name: "RunTestDeleteWithSuggestionAndConflict",
		run:  withStorage(storagetesting.RunTestDeleteWithSuggestionAndConflict),
	},
	{name: "RunTestDeleteWithConflict", run: withStorage(storagetesting.RunTestDeleteWithConflict)},
	{
		name: "RunTestDeleteWithSuggestionOfDeletedObject",
		run:  withStorage(storagetesting.RunTestDeleteWithSuggestionOfDeletedObject),
	},
	{
		name: "RunTestValidateDeletionWithSuggestion",
		run:  withStorage(storagetesting.RunTestValidateDeletionWithSuggestion),
	},
	{
		name: "RunTestValidateDeletionWithOnlySuggestionValid",
		run:  withStorage(storagetesting.RunTestValidateDeletionWithOnlySuggestionValid),
	},
	{
		name: "RunTestPreconditionalDeleteWithSuggestion",
		run:  withStorage(storagetesting.RunTestPreconditionalDeleteWithSuggestion),
	},
	{
		name: "RunTestPreconditionalDeleteWithOnlySuggestionPass",
		run:  withStorage(storagetesting.RunTestPreconditionalDeleteWithOnlySuggestionPass),
	},
	{
		name: "RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError",
		run: func(ctx context.Context, t *testing.T, f *fixture) {
			storagetesting.RunTestDeleteWithConflictAndMissingExpectedTransformOrDecodeError(ctx,
				t, f, f.codec.failing.Store)
		},
	},
	{
		name: "RunTestDeleteExpectedTransformOrDecodeError",
		run: func(ctx context.Context, t *testing.T, f *fixture) {
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, f, f.codec.failing.Store)
		},
	},
	{
		name: "RunTestDeleteExpectedTransformOrDecodeError",
		run: func(ctx context.Context, t *testing.T, f *fixture) {
			b := &failingTransformer{Transformer: identity.NewEncryptCheckTransformer()}
			f.Transform(func(value.Transformer) value.Transformer { return b })
			storagetesting.RunTestDeleteExpectedTransformOrDecodeError(ctx, t, f, b.failing.Store)
		},
	},
	{
		name: "RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError",
		run: func(ctx context.Context, t *testing.T, f *fixture) {
			storagetesting.RunTestDeleteWithSuggestionAndMissingExpectedTransformOrDecodeError(ctx, t, f)
		},
	},
	{name: "RunTestGuaranteedUpdate", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGuaranteedUpdate(ctx, t, newPrefixedFixture(f), f.checkStored)
	}},
	{
		name: "RunTestGuaranteedUpdateChecksStoredData",
		run:  withPrefix(storagetesting.RunTestGuaranteedUpdateChecksStoredData),
	},
	{name: "RunTestGuaranteedUpdateWithTTL", run: withStorage(storagetesting.RunTestGuaranteedUpdateWithTTL)},
	{name: "RunTestGuaranteedUpdateWithConflict", run: withStorage(storagetesting.RunTestGuaranteedUpdateWithConflict)},
	{
		name: "RunTestGuaranteedUpdateWithSuggestionAndConflict",
		run:  withStorage(storagetesting.RunTestGuaranteedUpdateWithSuggestionAndConflict),
	},
	{name: "RunTestTransformationFailure", run: withPrefix(storagetesting.RunTestTransformationFailure)},
}

var readTests = []suiteTest{
	// An object of this test lives for a second.
	{name: "RunTestGet", serial: true, run: withStorage(storagetesting.RunTestGet)},
	{name: "RunTestList", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestList(ctx, t, f, f.compact, false, nil)
	}},
	{name: "RunTestConsistentList", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestConsistentList(ctx, t, f, f.advance, f.lags, true, true)
	}},
	{name: "RunTestGetListNonRecursive", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGetListNonRecursive(ctx, t, f.advance, f)
	}},
	{name: "RunTestGetListRecursivePrefix", run: withStorage(storagetesting.RunTestGetListRecursivePrefix)},
	{name: "RunTestGetListWithoutErrorAggregation", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestGetListWithoutErrorAggregation(ctx, t, newPrefixedFixture(f), errCorrupt)
	}},
	// The last argument of these three tests is a function that checks the number of requests
	// to etcd. It may be nil.
	{name: "RunTestListContinuation", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListContinuation(ctx, t, f, nil)
	}},
	{
		name: "RunTestListPaginationRareObject", timed: true,
		run: func(ctx context.Context, t *testing.T, f *fixture) {
			storagetesting.RunTestListPaginationRareObject(ctx, t, f, nil)
		},
	},
	{name: "RunTestListContinuationWithFilter", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestListContinuationWithFilter(ctx, t, f, nil)
	}},
	{
		name: "RunTestListInconsistentContinuation", timed: true,
		run: func(ctx context.Context, t *testing.T, f *fixture) {
			storagetesting.RunTestListInconsistentContinuation(ctx, t, f, f.compact)
		},
	},
	{name: "RunTestListResourceVersionMatch", run: withPrefix(storagetesting.RunTestListResourceVersionMatch)},
	{name: "RunTestListPaging", run: withStorage(storagetesting.RunTestListPaging)},
	{name: "RunTestNamespaceScopedList", run: withStorage(storagetesting.RunTestNamespaceScopedList)},
	{name: "RunTestStats", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestStats(ctx, t, f, f.codec, identity.NewEncryptCheckTransformer(), false)
	}},
	{name: "RunTestCompactRevision", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestCompactRevision(ctx, t, f, f.advance, f.compact)
	}},
}

var watchTests = []suiteTest{
	{name: "RunTestWatch", run: withStorage(storagetesting.RunTestWatch)},
	{name: "RunTestWatchFromZero", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchFromZero(ctx, t, f, f.compact)
	}},
	{name: "RunTestDeleteTriggerWatch", run: withStorage(storagetesting.RunTestDeleteTriggerWatch)},
	{name: "RunTestWatchFromNonZero", run: withStorage(storagetesting.RunTestWatchFromNonZero)},
	{name: "RunTestDelayedWatchDelivery", timed: true, run: withStorage(storagetesting.RunTestDelayedWatchDelivery)},
	{name: "RunTestWatchError", run: withPrefix(storagetesting.RunTestWatchError)},
	{name: "RunTestWatchWithUnsafeDelete", timed: true, run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunTestWatchWithUnsafeDelete(ctx, t, newPrefixedFixture(f), errCorrupt)
	}},
	{name: "RunTestWatchContextCancel", run: withStorage(storagetesting.RunTestWatchContextCancel)},
	{name: "RunTestWatcherTimeout", timed: true, run: withStorage(storagetesting.RunTestWatcherTimeout)},
	{
		name: "RunTestWatchDeleteEventObjectHaveLatestRV",
		run:  withStorage(storagetesting.RunTestWatchDeleteEventObjectHaveLatestRV),
	},
	{
		name: "RunTestWatchInitializationSignal", timed: true,
		run: withStorage(storagetesting.RunTestWatchInitializationSignal),
	},
	{name: "RunOptionalTestProgressNotify", run: func(ctx context.Context, t *testing.T, f *fixture) {
		storagetesting.RunOptionalTestProgressNotify(ctx, t, f, f.advance)
	}},
	{name: "RunTestClusterScopedWatch", run: withStorage(storagetesting.RunTestClusterScopedWatch)},
	{name: "RunTestNamespaceScopedWatch", run: withStorage(storagetesting.RunTestNamespaceScopedWatch)},
	{
		name: "RunTestWatchDispatchBookmarkEvents", timed: true,
		run: func(ctx context.Context, t *testing.T, f *fixture) {
			storagetesting.RunTestWatchDispatchBookmarkEvents(ctx, t, f, true)
		},
	},
	{
		name: "RunTestOptionalWatchBookmarksWithCorrectResourceVersion", timed: true,
		run: withStorage(storagetesting.RunTestOptionalWatchBookmarksWithCorrectResourceVersion),
	},
	{
		name: "RunSendInitialEventsBackwardCompatibility",
		run:  withStorage(storagetesting.RunSendInitialEventsBackwardCompatibility),
	},
	{name: "RunWatchSemantics", serial: true, timed: true, run: withStorage(storagetesting.RunWatchSemantics)},
	{
		name: "RunWatchSemanticInitialEventsExtended", serial: true,
		run: withStorage(storagetesting.RunWatchSemanticInitialEventsExtended),
	},
	{name: "RunWatchListMatchSingle", serial: true, run: withStorage(storagetesting.RunWatchListMatchSingle)},
	{
		name: "RunWatchErrorIsBlockingFurtherEvents",
		run:  withPrefix(storagetesting.RunWatchErrorIsBlockingFurtherEvents),
	},
}
